package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// line is a connection that is made anew, when it has ended, once somebody needs it.
type line struct {
	config *Config

	mu      sync.Mutex
	attempt *attempt // the last one, which may still be going on; nil before the first
}

// attempt is one try to connect, and the session that came of it.
type attempt struct {
	done    chan struct{} // closed when the rest is known
	session *session
	err     error
}

// connect returns the living session. Without one it begins to connect, or waits for the attempt that is going on.
func (l *line) connect(ctx context.Context) (*session, error) {
	l.mu.Lock()
	a := l.attempt
	if a == nil || a.isOver() {
		a = &attempt{done: make(chan struct{})}
		l.attempt = a
		go a.run(l.config)
	}
	l.mu.Unlock()
	select {
	case <-a.done:
		return a.session, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no connection yet: %w", context.Cause(ctx))
	}
}

// run tries one server after the other. Its end is bounded by how long each may take.
func (a *attempt) run(c *Config) {
	defer close(a.done)
	var failures []error
	for _, server := range c.Servers {
		session, err := dial(c, server)
		if err == nil {
			a.session = session
			return
		}
		failures = append(failures, err)
	}
	a.err = fmt.Errorf("no connection: %w", errors.Join(failures...))
}

// isOver tells whether the attempt has come to nothing, or its session has ended.
func (a *attempt) isOver() bool {
	select {
	case <-a.done:
		return a.err != nil || a.session.conn.IsClosed()
	default:
		return false
	}
}

// close ends the connection. It comes after the last connect.
func (l *line) close() {
	if l.attempt == nil {
		return
	}
	<-l.attempt.done
	if l.attempt.session != nil {
		l.attempt.session.close()
	}
}
