package nats

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/internal/intake"
)

// place is where a message is. The time tells it from one in a stream that was made anew.
type place struct {
	sequence uint64
	stored   int64 // in nanoseconds
}

// loan is a message that the source has. The source's lock guards it.
type loan struct {
	reader   *reader
	lane     string
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
	return &consumer.Delivery{Message: decode(l.message, l.meta), Lane: l.lane, Deliveries: int(l.meta.NumDelivered), Ref: l}
}

// add takes what was delivered. A message that the source still has, because the server has lost patience while the
// connection was away, is not lent twice.
func (r *reader) add(m jetstream.Msg) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	s := r.source
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{meta.Sequence.Stream, meta.Timestamp.UnixNano()}
	if l := r.held[at]; l != nil {
		l.message, l.meta, l.told, l.attempts = m, meta, time.Now(), 0
		return nil
	}
	s.last++
	l := &loan{reader: r, lane: s.config.lane(m.Subject()), place: at, number: s.last, message: m, meta: meta, told: time.Now()}
	r.held[at] = l
	r.shelf.Add(l)
	return nil
}

// drop ends a loan. The lock is held.
func (l *loan) drop() {
	delete(l.reader.held, l.place)
	delete(l.reader.source.finished, l.number)
	if l.over != nil {
		close(l.over)
	}
	intake.Signal(l.reader.shelf.Freed)
}

// forget drops everything: the stream that it was in is gone.
func (r *reader) forget() {
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	for _, l := range r.held {
		l.drop()
	}
	r.shelf.Ready = nil
}

// inOrder sorts loans in the order of deliveries.
func inOrder(loans []*loan) {
	slices.SortFunc(loans, func(a, b *loan) int { return cmp.Compare(a.number, b.number) })
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
		l.drop()
	}
}

// keep tells the server what is finished and returned, and that the rest is in progress.
func (s *Source) keep(ctx context.Context) {
	for {
		select {
		case <-s.wake:
			s.settle()
		case <-time.After(s.beat()):
			s.settle()
			s.extend()
		case <-ctx.Done():
			s.settle()
			return
		}
	}
}

// beat is how often what the source has is looked at.
func (s *Source) beat() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	beat := time.Second
	for _, r := range s.readers {
		beat = min(beat, r.ackWait/3)
	}
	return beat
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
		if l.attempts > 0 && time.Since(l.told) < min(l.reader.ackWait/3, longestSilence) {
			continue
		}
		if l.attempts == mostAttempts {
			l.drop()
			continue
		}
		due = append(due, word{l, l.message})
	}
	s.mu.Unlock()
	inOrder(returned)
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
	for _, r := range s.readers {
		for _, l := range r.held {
			if s.finished[l.number] == nil && time.Since(l.told) >= r.ackWait/3 {
				due = append(due, word{l, l.message})
			}
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
