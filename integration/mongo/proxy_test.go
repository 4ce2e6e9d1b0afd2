package mongo

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// replicaSet stands in front of the server and passes for a replica set: it says so in its hello, takes off what belongs
// to a transaction and answers the commit and the abort itself. So the code of transactions runs on a server without them:
// its commands, their order, and what it does about errors. That the commands commit together is not shown by it. In front of a
// server with transactions it passes everything on, but for the faults.
type replicaSet struct {
	address      string
	server       string
	transactions bool // of the server

	mu    sync.Mutex
	fault func(name string) bson.D // an answer to a command instead of the server's
}

// newReplicaSet starts one, and returns the options of a client that talks to it.
func newReplicaSet(t *testing.T) (*replicaSet, *options.ClientOptions) {
	t.Helper()
	server := options.Client().ApplyURI(os.Getenv("POSTRIDER_TEST_MONGODB"))
	if len(server.Hosts) == 0 {
		t.Fatal("POSTRIDER_TEST_MONGODB names no server: scripts/services starts the servers")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &replicaSet{address: listener.Addr().String(), server: server.Hosts[0], transactions: hasTransactions(t, connect(t))}
	var connections sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		connections.Wait()
	})
	connections.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				defer client.Close()
				if err := r.serve(client); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
					t.Logf("connection through the proxy: %v", err)
				}
			})
		}
	})
	// Each request has one answer: a server that may would stream answers to a hello.
	return r, options.Client().ApplyURI("mongodb://" + r.address + "/?directConnection=true&serverMonitoringMode=poll")
}

// inject makes commands fail: faults are given, in their order, to the commands of the name.
func (r *replicaSet) inject(name string, faults ...bson.D) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = func(sent string) bson.D {
		if sent != name || len(faults) == 0 {
			return nil
		}
		first := faults[0]
		faults = faults[1:]
		return first
	}
}

func (r *replicaSet) faultOf(name string) bson.D {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault == nil {
		return nil
	}
	return r.fault(name)
}

// refusal is the answer of a server that refuses a command.
func refusal(code int, labels ...string) bson.D {
	return bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: code}, {Key: "errmsg", Value: "injected"}, {Key: "errorLabels", Value: labels}}
}

// message is one of the wire protocol: what comes before the first document, the document, and what follows.
type message struct {
	head []byte
	doc  bson.Raw
	rest []byte
}

const (
	opReply = 1
	opQuery = 2004
	opMsg   = 2013
)

func readMessage(from io.Reader) (m message, err error) {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return m, err
	}
	all := make([]byte, binary.LittleEndian.Uint32(size[:]))
	copy(all, size[:])
	if _, err := io.ReadFull(from, all[4:]); err != nil {
		return m, err
	}
	start := 16 + 4 + 1 // header, flags, kind of section
	switch binary.LittleEndian.Uint32(all[12:]) {
	case opQuery:
		start = 20 + slices.Index(all[20:], 0) + 1 + 8 // header, flags, collection, skip and limit
	case opReply:
		start = 16 + 20
	}
	end := start + int(binary.LittleEndian.Uint32(all[start:]))
	return message{all[:start], all[start:end], all[end:]}, nil
}

func (m message) write(to io.Writer) error {
	all := slices.Concat(m.head, m.doc, m.rest)
	binary.LittleEndian.PutUint32(all, uint32(len(all)))
	_, err := to.Write(all)
	return err
}

// serve passes the commands of one connection on, one after another.
func (r *replicaSet) serve(client net.Conn) error {
	server, err := net.Dial("tcp", r.server)
	if err != nil {
		return err
	}
	defer server.Close()
	for {
		request, err := readMessage(client)
		if err != nil {
			return err
		}
		answer, err := r.answer(server, request)
		if err != nil {
			return err
		}
		if err := answer.write(client); err != nil {
			return err
		}
	}
}

func (r *replicaSet) answer(server net.Conn, request message) (message, error) {
	name, collection := nameOf(request.doc)
	switch fault := r.faultOf(strings.TrimSpace(name + " " + collection)); {
	case fault != nil:
		return request.answered(fault)
	case r.transactions:
		return passOn(server, request)
	case name == "commitTransaction", name == "abortTransaction":
		return request.answered(bson.D{{Key: "ok", Value: 1}})
	}
	var err error
	if request.doc, err = changed(request.doc, nil, "txnNumber", "startTransaction", "autocommit", "readConcern"); err != nil {
		return message{}, err
	}
	reply, err := passOn(server, request)
	if err != nil {
		return message{}, err
	}
	switch strings.ToLower(name) {
	case "hello", "ismaster":
		reply.doc, err = changed(reply.doc, bson.D{{Key: "setName", Value: "rs"}, {Key: "hosts", Value: bson.A{r.address}}, {Key: "me", Value: r.address}})
	case "buildinfo":
		reply.doc, err = changed(reply.doc, nil, "ferretdb")
	}
	return reply, err
}

func passOn(server net.Conn, request message) (message, error) {
	if err := request.write(server); err != nil {
		return message{}, err
	}
	return readMessage(server)
}

func nameOf(command bson.Raw) (name, collection string) {
	first := command.Index(0)
	collection, _ = first.Value().StringValueOK()
	return first.Key(), collection
}

// answered is the answer to a request, whose id it carries.
func (m message) answered(doc bson.D) (message, error) {
	head := make([]byte, 21)
	copy(head[8:12], m.head[4:8])
	binary.LittleEndian.PutUint32(head[12:], opMsg)
	raw, err := bson.Marshal(doc)
	return message{head: head, doc: raw}, err
}

// changed returns a document with more fields, and without some.
func changed(raw bson.Raw, more bson.D, without ...string) (bson.Raw, error) {
	var doc bson.D
	if err := bson.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	doc = slices.DeleteFunc(doc, func(e bson.E) bool { return slices.Contains(without, e.Key) })
	return bson.Marshal(append(doc, more...))
}
