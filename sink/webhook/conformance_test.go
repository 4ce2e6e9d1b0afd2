package webhook

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

func TestConformance(t *testing.T) {
	sinktest.Run(t, func(t testing.TB) sinktest.Fixture {
		const limit = 100_000
		long := strings.Repeat("x", 1000) // so that the first request of all is more than LostAnswers lets pass
		r := newReceiver()
		r.topic, r.limit = "orders", limit
		server := start(t, r, "127.0.0.1:0")
		t.Cleanup(func() { server.stop(t) })
		proxy := sinktest.NewProxy(t, server.address)
		return sinktest.Fixture{
			Sink:    open(t, Config{URL: "http://" + proxy.Addr + "/" + long}),
			Topic:   "orders",
			Missing: "nowhere",
			Read:    r.read,
			Fill: func(m relay.Message) relay.Message {
				m.Payload = []byte(strings.Repeat("x", limit-messageSize(m.Headers, nil)))
				return m
			},
			Proxy: proxy,
			Crash: func(t testing.TB) {
				server.stop(t)
				server = start(t, r, server.address)
			},
		}
	})
}

// running is a receiver's server. Unlike httptest's it can end without waiting for requests, and start again where it
// was.
type running struct {
	address string
	server  *http.Server
	ended   chan error
}

func start(t testing.TB, handler http.Handler, address string) *running {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{
		address: listener.Addr().String(),
		server:  &http.Server{Handler: handler, ConnContext: withConn},
		ended:   make(chan error, 1),
	}
	go func() { r.ended <- r.server.Serve(recordingListener{listener}) }()
	return r
}

func (r *running) stop(t testing.TB) {
	t.Helper()
	if err := r.server.Close(); err != nil {
		t.Error(err)
	}
	<-r.ended
}
