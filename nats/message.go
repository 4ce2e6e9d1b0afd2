package nats

import (
	"errors"
	"fmt"
	"net/textproto"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/relay"
)

// longestSubject keeps a message's first line under the length at which a server ends the connection.
const longestSubject = 1024

// encode turns an event into a message, or says why NATS cannot carry it. The stream recognizes a repetition by the id.
func encode(m relay.Message, id, stream string) (*nats.Msg, error) {
	if err := checkSubject(m.Topic); err != nil {
		return nil, err
	}
	header := make(nats.Header, len(m.Headers)+2)
	for _, h := range m.Headers {
		if err := checkHeader(h); err != nil {
			return nil, fmt.Errorf("header %q: %w", h.Name, err)
		}
		header[h.Name] = []string{h.Value} // not Set, which would change the case of the name
	}
	if id != "" {
		header[jetstream.MsgIDHeader] = []string{id}
	}
	if stream != "" {
		header[jetstream.ExpectedStreamHeader] = []string{stream}
	}
	return &nats.Msg{Subject: m.Topic, Header: header, Data: m.Payload}, nil
}

func checkSubject(subject string) error {
	if len(subject) > longestSubject {
		return fmt.Errorf("subject of %d bytes is longer than %d", len(subject), longestSubject)
	}
	if strings.ContainsAny(subject, " \t\r\n\x00") {
		return fmt.Errorf("subject %q has white space in it", subject)
	}
	if strings.HasPrefix(subject, "$JS.") || strings.HasPrefix(subject, "$SYS.") {
		return fmt.Errorf("subject %q belongs to the server", subject)
	}
	for token := range strings.SplitSeq(subject, ".") {
		switch token {
		case "":
			return fmt.Errorf("subject %q has an empty part", subject)
		case "*", ">":
			return fmt.Errorf("subject %q is a pattern", subject)
		}
	}
	return nil
}

func checkHeader(h relay.Header) error {
	switch {
	case len(h.Name) >= 5 && strings.EqualFold(h.Name[:5], "nats-"):
		return errors.New("the name is reserved for instructions to the server")
	case !validName(h.Name):
		return errors.New("NATS cannot carry that name")
	case strings.ContainsAny(h.Value, "\r\n"):
		return errors.New("NATS cannot carry a line break in a value")
	case textproto.TrimString(h.Value) != h.Value:
		return errors.New("NATS cannot carry white space at the ends of a value")
	}
	return nil
}

// validName allows what header names in HTTP may be made of.
func validName(name string) bool {
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}
