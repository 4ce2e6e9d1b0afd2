package nats

import (
	"errors"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// complaints are what a server says apart from its answers: that it does not let us publish to a subject. Such a
// message is never answered.
type complaints struct {
	mu        sync.Mutex
	bySubject map[string]error
	next      chan struct{} // closed at the next complaint
}

func newComplaints() *complaints {
	return &complaints{bySubject: make(map[string]error), next: make(chan struct{})}
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
	c.bySubject[subject] = err
	close(c.next)
	c.next = make(chan struct{})
}

// take returns the complaint about a subject, once, and a channel that is closed at the next one about any.
func (c *complaints) take(subject string) (complaint error, next <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	complaint = c.bySubject[subject]
	delete(c.bySubject, subject)
	return complaint, c.next
}
