package destination

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/postrider/postrider/sink/webhook"
	"github.com/postrider/postrider/sinktest"
)

// newWebhook is a receiver that answers at once.
func newWebhook(t testing.TB) Destination {
	t.Helper()
	var (
		mu       sync.Mutex
		arrived  []string
		answer   atomic.Int64
		answered = func(status int64) func(testing.TB) { return func(testing.TB) { answer.Store(status) } }
	)
	answered(http.StatusOK)(t)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if status := answer.Load(); err != nil || status != http.StatusOK {
			w.WriteHeader(int(status))
			return
		}
		mu.Lock()
		defer mu.Unlock()
		arrived = append(arrived, string(body))
	}))
	t.Cleanup(receiver.Close)
	proxy := sinktest.NewProxy(t, receiver.Listener.Addr().String())
	return Destination{
		Name:  "webhook",
		Topic: "hooks",
		Sink:  opened[*webhook.Sink](t)(webhook.Open(webhook.Config{URL: "http://" + proxy.Addr, AllowPrivate: true})),
		Troubles: append(network(proxy),
			Trouble{Name: "answers errors", Begin: answered(http.StatusInternalServerError), End: answered(http.StatusOK), Spends: true},
			Trouble{Name: "refuses the login", Begin: answered(http.StatusUnauthorized), End: answered(http.StatusOK)}),
		Arrived: func(testing.TB) []string {
			mu.Lock()
			defer mu.Unlock()
			return arrived
		},
	}
}
