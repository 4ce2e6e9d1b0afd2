package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/relay"
)

const (
	connectTimeout   = 5 * time.Second
	idleTimeout      = 30 * time.Second
	pingAfter        = 4 * time.Second // of silence on a connection of HTTP/2
	pingTimeout      = 4 * time.Second
	maxAnswerHeaders = 64 << 10 // bytes
	readBody         = 4 << 10  // bytes
)

// Sink posts to a URL. It implements relay.Sink.
type Sink struct {
	settings
	dialer    *net.Dialer
	transport *http.Transport
	slots     chan struct{} // has a token for each request under way
	redactor  *strings.Replacer
	witness   *witness
	gone      atomic.Bool // the receiver has answered 410
}

var _ relay.Sink = (*Sink)(nil)

// Open checks the configuration. Nothing is connected before something is published. The error reports every mistake of
// the configuration and shows neither the URL nor a secret.
func Open(c Config) (*Sink, error) {
	resolved, err := c.resolve()
	if err != nil {
		return nil, fmt.Errorf("webhook sink: %w", err)
	}
	s := &Sink{
		settings: resolved,
		dialer:   &net.Dialer{Timeout: connectTimeout},
		slots:    make(chan struct{}, resolved.Concurrency),
		redactor: newRedactor(resolved.url),
		witness:  newWitness(),
	}
	if !c.AllowPrivate {
		s.dialer.Control = refusePrivate
	}
	// Proxy stays nil: a proxy would dial for us, and look at no address.
	s.transport = &http.Transport{
		DialContext:            s.dialer.DialContext,
		TLSClientConfig:        c.TLS.Clone(),
		TLSHandshakeTimeout:    connectTimeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    resolved.Concurrency,
		IdleConnTimeout:        idleTimeout,
		DisableCompression:     true, // a small answer could become a large one
		MaxResponseHeaderBytes: maxAnswerHeaders,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	return s, nil
}

// try is what became of sending a message. The zero value says that it was not sent.
type try struct {
	outcome relay.Outcome
	silent  error     // instead of an outcome: why there was no answer
	since   time.Time // with silent: an answered request that began later blames the event
}

// Publish sends the events of a key one after the other and keys side by side. It returns at the latest Config.Timeout
// after ctx has ended. See relay.Sink and the package comment.
func (s *Sink) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	b := keyorder.New(batch)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	tries := s.sendAll(ctx, stop, batch, b)
	for i, t := range tries {
		switch {
		case t.silent != nil && s.witness.blames(batch[i].EventID, t.since):
			b.Settle(i, relay.Retry(t.silent))
		case t.silent != nil:
			b.Settle(i, relay.Unavailable(t.silent))
		case t.outcome.Class != 0:
			b.Settle(i, t.outcome)
		}
	}
	if err := context.Cause(ctx); err != nil {
		b.SettleRest(relay.Unavailable(fmt.Errorf("webhook: not sent: %w", err)))
	}
	return b.Outcomes()
}

// sendAll works through the keys until all are done or ctx ends. stop ends ctx when sending more makes no sense.
func (s *Sink) sendAll(ctx context.Context, stop context.CancelCauseFunc, batch []relay.Message, b *keyorder.Batch) []try {
	keys := make([][]int, b.Keys())
	for i := range batch {
		keys[b.Key(i)] = append(keys[b.Key(i)], i)
	}
	queue := make(chan []int, len(keys))
	for _, key := range keys {
		queue <- key
	}
	close(queue)
	tries := make([]try, len(batch))
	var workers sync.WaitGroup
	for range min(len(keys), s.Concurrency) {
		workers.Go(func() {
			for key := range queue {
				s.sendKey(ctx, stop, batch, key, tries)
			}
		})
	}
	workers.Wait()
	return tries
}

// sendKey sends the messages of a key until one is not published.
func (s *Sink) sendKey(ctx context.Context, stop context.CancelCauseFunc, batch []relay.Message, key []int, tries []try) {
	for _, i := range key {
		tries[i] = s.send(ctx, batch[i])
		if tries[i].outcome.Class == relay.ClassUnavailable {
			stop(tries[i].outcome.Err)
		}
		if tries[i].outcome.Class != relay.ClassPublished {
			return
		}
	}
}

// send sends a message when its turn comes.
func (s *Sink) send(ctx context.Context, m relay.Message) try {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return try{}
	}
	switch {
	case ctx.Err() != nil: // both cases of a select may be ready
		return try{}
	case s.gone.Load():
		return try{outcome: relay.Unavailable(s.reason(m, errGone))}
	}
	began := time.Now()
	header, err := s.encode(m, began)
	if err != nil {
		return try{outcome: relay.Permanent(s.reason(m, err))}
	}
	a, err := s.exchange(ctx, header, m.Payload)
	if err == nil {
		s.witness.hear(m.EventID, began)
		return try{outcome: s.outcomeOf(m, a)}
	}
	reason := s.reason(m, errors.New(s.redactor.Replace(err.Error())))
	switch {
	case errors.Is(err, errNotConnected):
		return try{outcome: relay.Unavailable(reason)}
	case errors.Is(err, errNoAnswer):
		return try{silent: reason, since: began.Add(s.Timeout / 2)}
	default:
		return try{silent: reason, since: time.Now()}
	}
}

var (
	errNotConnected = errors.New("no connection")
	errNoAnswer     = errors.New("no answer within the time-out of")
)

// exchange sends a request and reads the answer. The error is an errNotConnected when nothing was sent, and an
// errNoAnswer after the time-out.
func (s *Sink) exchange(ctx context.Context, header http.Header, payload []byte) (answer, error) {
	// What was sent is waited for when ctx ends; what has no connection yet is given up.
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeout)
	defer cancel()
	var connected atomic.Bool
	defer context.AfterFunc(ctx, func() {
		if !connected.Load() {
			cancel()
		}
	})()
	traced := httptrace.WithClientTrace(own, &httptrace.ClientTrace{
		GetConn: func(string) { connected.Store(false) }, // again when an older connection turned out to be closed
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := http.NewRequestWithContext(traced, http.MethodPost, s.url.String(), bytes.NewReader(payload))
	if err != nil {
		return answer{}, err
	}
	request.Header = header
	if login := s.url.User; login != nil {
		password, _ := login.Password()
		request.SetBasicAuth(login.Username(), password)
	}
	response, err := s.transport.RoundTrip(request) // an http.Client would follow redirects and tell the URL
	switch {
	case err == nil:
	case !connected.Load() && ctx.Err() != nil:
		return answer{}, fmt.Errorf("%w: %w", errNotConnected, context.Cause(ctx))
	case !connected.Load():
		return answer{}, fmt.Errorf("%w: %w", errNotConnected, err)
	case own.Err() != nil:
		return answer{}, fmt.Errorf("%w %v", errNoAnswer, s.Timeout)
	default:
		return answer{}, fmt.Errorf("no answer: %w", err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, readBody)) // the status counts, whatever becomes of the body
	return answer{status: response.StatusCode, header: response.Header, body: string(body)}, nil
}

// Close closes the connections. It is called once, after the last Publish has returned.
func (s *Sink) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}
