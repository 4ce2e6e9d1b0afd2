package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// apiSubject is where a server answers a kind of question about a stream, which may be in another domain than the
// connection.
func apiSubject(domain, kind, stream string) string {
	prefix := jetstream.DefaultAPIPrefix
	if domain != "" {
		prefix = "$JS." + domain + ".API."
	}
	return prefix + "STREAM." + kind + "." + stream
}

// question is a request to the API of JetStream.
type question struct {
	subject string
	body    string
	answer  []byte // set by ask, unless err is
	err     error
}

// ask sends the questions, all at once, and waits for their answers.
func (s *Sink) ask(ctx context.Context, heard *listener, questions []*question) {
	inbox, answers := s.conn.NewInbox(), make(chan *nats.Msg, len(questions))
	subscription, err := s.conn.ChanSubscribe(inbox+".*", answers)
	if err != nil {
		for _, q := range questions {
			q.fail(err)
		}
		return
	}
	defer func() { _ = subscription.Unsubscribe() }() // fails when the connection has ended, and the subscription with it
	waiting := make(map[string]*question)             // by where their answers go
	for n, q := range questions {
		reply := inbox + "." + strconv.Itoa(n)
		if err := s.conn.PublishRequest(q.subject, reply, []byte(q.body)); err != nil {
			q.fail(err)
		} else {
			waiting[reply] = q
		}
	}
	for len(waiting) > 0 {
		next := heard.next()
		maps.DeleteFunc(waiting, func(_ string, q *question) bool { return q.fail(heard.about(q.subject)) })
		collect(ctx, answers, waiting, next)
	}
}

// collect takes answers until all have come, ctx has ended, or there is a complaint.
func collect(ctx context.Context, answers <-chan *nats.Msg, waiting map[string]*question, complaint <-chan struct{}) {
	for len(waiting) > 0 {
		select {
		case m := <-answers:
			if q := waiting[m.Subject]; q != nil {
				q.take(m)
				delete(waiting, m.Subject)
			}
		case <-ctx.Done():
			maps.DeleteFunc(waiting, func(_ string, q *question) bool { return q.fail(context.Cause(ctx)) })
		case <-complaint:
			return
		}
	}
}

func (q *question) take(m *nats.Msg) {
	if len(m.Data) == 0 { // the connection's word for a question that nobody listens to
		q.fail(nats.ErrNoResponders)
		return
	}
	q.answer = m.Data
}

// fail notes an error, if it is one, and reports whether it is.
func (q *question) fail(err error) bool {
	if err != nil {
		q.err = fmt.Errorf("asking %s: %w", q.subject, err)
	}
	return err != nil
}

// decode reads the answer. The error can be the server's.
func (q *question) decode(answer any) error {
	if q.err != nil {
		return q.err
	}
	var refused struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := errors.Join(json.Unmarshal(q.answer, &refused), json.Unmarshal(q.answer, answer)); err != nil {
		return fmt.Errorf("asking %s: %w", q.subject, err)
	}
	if refused.Error != nil {
		return fmt.Errorf("asking %s: %w", q.subject, refused.Error)
	}
	return nil
}

// hasCode tells whether an error is the server's with this code.
func hasCode(err error, code jetstream.ErrorCode) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.ErrorCode == code
}
