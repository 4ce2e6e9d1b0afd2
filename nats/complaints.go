package nats

import (
	"errors"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// complaints are what a server says apart from its answers: that it does not let us publish to a subject. Such a
// message is never answered. They reach everybody who listens.
type complaints struct {
	mu        sync.Mutex
	listeners map[*listener]bool
}

// listener holds the complaints of the time in which it listened. One about a subject is about every message to it,
// because nobody can tell which one is meant.
type listener struct {
	complaints *complaints
	bySubject  map[string]error
	news       chan struct{} // closed at the next complaint
}

func newComplaints() *complaints { return &complaints{listeners: make(map[*listener]bool)} }

// listen starts to listen, until stop.
func (c *complaints) listen() *listener {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &listener{complaints: c, bySubject: make(map[string]error), news: make(chan struct{})}
	c.listeners[l] = true
	return l
}

func (l *listener) stop() {
	l.complaints.mu.Lock()
	defer l.complaints.mu.Unlock()
	delete(l.complaints.listeners, l)
}

// about returns the complaint about a subject, if there is one.
func (l *listener) about(subject string) error {
	l.complaints.mu.Lock()
	defer l.complaints.mu.Unlock()
	return l.bySubject[subject]
}

// next is closed at the next complaint. Who waits for it takes it before asking about a subject.
func (l *listener) next() <-chan struct{} {
	l.complaints.mu.Lock()
	defer l.complaints.mu.Unlock()
	return l.news
}

// hear is the connection's handler of such messages.
func (c *complaints) hear(err error) {
	_, quoted, found := strings.Cut(err.Error(), `"`)
	if !found || !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	subject, _, _ := strings.Cut(quoted, `"`)
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.listeners {
		l.bySubject[subject] = err
		close(l.news)
		l.news = make(chan struct{})
	}
}
