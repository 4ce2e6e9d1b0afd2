package nats

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/consumer"
)

// place is where a message is. The time tells it from one in a stream that was made anew.
type place struct {
	sequence uint64
	stored   int64 // in nanoseconds
}

// loan is a message that the source has. The source's lock guards it.
type loan struct {
	place    place
	number   uint64 // ascends in the order of deliveries
	message  jetstream.Msg
	meta     *jetstream.MsgMetadata
	told     time.Time     // when the server last heard of it, or told us of it
	attempts int           // to acknowledge it
	over     chan struct{} // closed when it is settled, if somebody waits for that
}

// An acknowledgement that is not answered is sent again. A server that does not answer so many knows nothing of the message, or
// delivers it again.
const (
	longestSilence = 5 * time.Second
	mostAttempts   = 10
)

// acknowledgement is the word for it in JetStream's protocol. The library has no way to send one and not to wait for its answer.
var acknowledgement = []byte("+ACK")

func (l *loan) delivery() *consumer.Delivery {
	return &consumer.Delivery{Message: decode(l.message, l.meta), Deliveries: int(l.meta.NumDelivered), Ref: l}
}

// add takes what was delivered. A message that the source still has, because the server has lost patience while the
// connection was away, is not lent twice.
func (s *Source) add(m jetstream.Msg) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{meta.Sequence.Stream, meta.Timestamp.UnixNano()}
	if l := s.held[at]; l != nil {
		l.message, l.meta, l.told, l.attempts = m, meta, time.Now(), 0
		return nil
	}
	s.last++
	l := &loan{place: at, number: s.last, message: m, meta: meta, told: time.Now()}
	s.held[at] = l
	s.ready = append(s.ready, l)
	signal(s.news)
	return nil
}

// drop ends a loan. The lock is held.
func (s *Source) drop(l *loan) {
	delete(s.held, l.place)
	delete(s.finished, l.number)
	if l.over != nil {
		close(l.over)
	}
	signal(s.freed)
}

// forget drops everything: the stream that it was in is gone.
func (s *Source) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.inOrder() {
		s.drop(l)
	}
	s.ready = nil
}

// inOrder returns what the source has in the order of deliveries. The lock is held.
func (s *Source) inOrder() []*loan {
	return slices.SortedFunc(maps.Values(s.held), func(a, b *loan) int { return cmp.Compare(a.number, b.number) })
}

// answered takes the server's answer to an acknowledgement. That nobody listens says that the consumer is gone: nothing is left
// to be acknowledged.
func (s *Source) answered(m *nats.Msg) {
	number, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, s.answers), 10, 64)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.finished[number]; l != nil {
		s.drop(l)
	}
}

// keep tells the server what is finished and returned, and that the rest is in progress.
func (s *Source) keep(ctx context.Context) {
	for {
		s.mu.Lock()
		beat := min(s.ackWait/3, time.Second)
		s.mu.Unlock()
		select {
		case <-s.wake:
			s.settle()
		case <-time.After(beat):
			s.settle()
			s.extend()
		case <-ctx.Done():
			s.settle()
			return
		}
	}
}

// word is something to tell the server about a loan.
type word struct {
	*loan
	message jetstream.Msg
}

// settle acknowledges what is finished, for the first time or because no answer came, and gives back what is returned.
func (s *Source) settle() {
	s.mu.Lock()
	returned := s.returned
	s.returned = nil
	var due []word
	for _, l := range s.finished {
		if l.attempts > 0 && time.Since(l.told) < min(s.ackWait/3, longestSilence) {
			continue
		}
		if l.attempts == mostAttempts {
			s.drop(l)
			continue
		}
		due = append(due, word{l, l.message})
	}
	s.mu.Unlock()
	slices.SortFunc(returned, func(a, b *loan) int { return cmp.Compare(a.number, b.number) })
	for _, l := range returned {
		_ = l.message.Nak() // if it does not arrive, the message comes again after AckWait
	}
	s.tell(due, func(w word) error {
		return s.conn.PublishMsg(&nats.Msg{Subject: w.message.Reply(), Reply: s.answers + strconv.FormatUint(w.number, 10), Data: acknowledgement})
	})
}

// extend says of what the source has for a while that it is in progress.
func (s *Source) extend() {
	s.mu.Lock()
	var due []word
	for _, l := range s.held {
		if s.finished[l.number] == nil && time.Since(l.told) >= s.ackWait/3 {
			due = append(due, word{l, l.message})
		}
	}
	s.mu.Unlock()
	s.tell(due, func(w word) error { return w.message.InProgress() })
}

// tell sends words, and notes which ones could be sent.
func (s *Source) tell(words []word, send func(word) error) {
	sent := words[:0]
	for _, w := range words {
		if send(w) == nil {
			sent = append(sent, w)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range sent {
		w.told = time.Now()
		if s.finished[w.number] != nil {
			w.attempts++
		}
	}
}
