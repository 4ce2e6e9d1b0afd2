package mongoinbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/mongo"
)

// childVariable holds the orders of a process that consumes.
const childVariable = "POSTRIDER_TEST_CONSUME_MONGODB"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		consume(text)
		return
	}
	os.Exit(m.Run())
}

// orders say where a process consumes, and where it dies.
type orders struct {
	Address, Database string

	Point point
	Hit   int64 // the process dies when it is at the point for so many times
}

// point is a place in the way of messages.
type point string

const (
	beforeReceipt point = "before receipt"
	afterReceipt  point = "after receipt"
	inEffect      point = "in the effect"
	beforeCommit  point = "before commit"
	afterCommit   point = "after commit, before ack"
	afterAck      point = "after ack"
)

// killer ends this process without a warning.
type killer struct {
	orders
	hits atomic.Int64
}

func (k *killer) at(p point) {
	if p == k.Point && k.hits.Add(1) == k.Hit {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

const (
	crashBatch = 5
	crashFresh = 4 * crashBatch // messages before each kill, enough to come to the point for the fourth time
)

// consume applies the messages whose ids come from the standard input, and acknowledges them on the standard output.
func consume(text string) {
	k := &killer{}
	must(json.Unmarshal([]byte(text), &k.orders))
	client, err := driver.Connect(options.Client().ApplyURI(k.Address), options.Client().SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if e.CommandName == "commitTransaction" {
				k.at(beforeCommit)
			}
		},
	}))
	must(err)
	db := client.Database(k.Database)
	in, err := mongo.NewInbox(db.Collection("inbox_receipts"), mongo.InboxConfig{Consumer: "billing"})
	must(err)
	effect := func(ctx context.Context, fresh []inbox.Message) error {
		k.at(afterReceipt)
		for _, m := range fresh {
			if _, err := db.Collection("effects").InsertOne(ctx, bson.M{"what": m.EventID()}); err != nil {
				return err
			}
			k.at(inEffect)
		}
		return nil
	}
	var batch []inbox.Message
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if batch = append(batch, message(lines.Text())); len(batch) < crashBatch {
			continue
		}
		k.at(beforeReceipt)
		results := in.ProcessBatch(context.Background(), batch, effect)
		k.at(afterCommit)
		for i, r := range results {
			must(r.Err)
			fmt.Println(batch[i].EventID())
		}
		k.at(afterAck)
		batch = nil
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// TestKilledAtAnyPointEachMessageHasItsEffectOnce delivers to each process what those before it have not acknowledged. The
// transaction that a process leaves open is in the way until the server ends it, which here it does after a second.
func TestKilledAtAnyPointEachMessageHasItsEffectOnce(t *testing.T) {
	t.Parallel()
	kills := 5
	if os.Getenv("POSTRIDER_FULL") == "1" {
		kills = 50
	}
	server := servers.Launch(t, "mongodb6")
	address := fmt.Sprintf("mongodb://127.0.0.1:%d/?replicaSet=rs0", server.Port())
	client := connectTo(t, address)
	if err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "setParameter", Value: 1}, {Key: "transactionLifetimeLimitSeconds", Value: 1}}).Err(); err != nil {
		t.Fatal(err)
	}
	// Points at the same time would wait for each other's processors: the group ends before the server does.
	t.Run("points", func(t *testing.T) {
		for _, p := range []point{beforeReceipt, afterReceipt, inEffect, beforeCommit, afterCommit, afterAck} {
			t.Run(string(p), func(t *testing.T) {
				t.Parallel()
				killAt(t, client, orders{Address: address, Point: p}, kills)
			})
		}
	})
}

func killAt(t *testing.T, client *driver.Client, o orders, kills int) {
	db := newDatabase(t, client)
	in, err := mongo.NewInbox(db.Collection("inbox_receipts"), mongo.InboxConfig{Consumer: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(in.Init(t.Context()), db.CreateCollection(t.Context(), "effects")); err != nil {
		t.Fatal(err)
	}
	o.Database = db.Name()
	waiting, sent := []string(nil), map[string]int{}
	for n := range kills {
		for range crashFresh {
			id := fmt.Sprint("m", len(sent))
			waiting, sent[id] = append(waiting, id), 1
		}
		o.Hit = int64(n%4 + 1)
		if died := deliver(t, o, &waiting); !died {
			t.Fatalf("a process was not killed %s", o.Point)
		}
	}
	o.Point = ""
	if died := deliver(t, o, &waiting); died || len(waiting) > 0 {
		t.Fatalf("the last process has left %q, and was killed: %v", waiting, died)
	}
	var found []struct{ What string }
	cursor, err := db.Collection("effects").Find(t.Context(), bson.M{})
	if err == nil {
		err = cursor.All(t.Context(), &found)
	}
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]int{}
	for _, effect := range found {
		effects[effect.What]++
	}
	if !maps.Equal(effects, sent) {
		t.Errorf("%d effects of %d messages, want one of each of %d", len(found), len(effects), len(sent))
	}
}

// deliver gives what waits to a process and takes away what it acknowledges. It reports whether the process killed itself.
func deliver(t *testing.T, o orders, waiting *[]string) (died bool) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var acknowledged, complaints bytes.Buffer
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+string(text))
	child.Stdin = strings.NewReader(strings.Join(*waiting, "\n") + "\n")
	child.Stdout, child.Stderr = &acknowledged, &complaints
	err = child.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		died = exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	}
	if err != nil && !died {
		t.Fatalf("the process ended with %v\n%s", err, complaints.String())
	}
	done := strings.Fields(acknowledged.String())
	*waiting = slices.DeleteFunc(*waiting, func(id string) bool { return slices.Contains(done, id) })
	return died
}
