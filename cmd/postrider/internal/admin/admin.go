// Package admin is the HTTP server of a relay: metrics, health, readiness, a status page, and hints. It changes nothing.
package admin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// Store is what the status page asks of the outbox.
type Store interface {
	Status(ctx context.Context, relayName string) (operator.Status, error)
	DeadGroups(ctx context.Context, limit int) ([]operator.DeadGroup, error)
}

// Jobs lists the jobs over dead letters that have not ended.
type Jobs func(context.Context) ([]operator.Job, error)

// Config says what the server shows. All fields but Token must be set.
type Config struct {
	Token   string // what a caller must show; empty lets everybody in who calls a loopback name
	Relay   string // relay name
	Version string
	Health  func() relay.Health
	Hint    func() // as relay.Relay.Hint
	Metrics http.Handler
	Store   Store
	Jobs    Jobs
	Logger  *slog.Logger
}

//go:embed style.css
var style []byte

// Handler answers the requests to the server.
func Handler(c Config) http.Handler {
	guarded := http.NewServeMux()
	guarded.Handle("GET /metrics", c.Metrics)
	guarded.HandleFunc("GET /{$}", c.status)
	guarded.Handle("POST /hint", http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c.Hint()
		w.WriteHeader(http.StatusNoContent)
	})))
	guarded.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		w.Write(style)
	})

	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", c.ready)
	mux.Handle("/", guard(c.Token, guarded))
	return harden(mux)
}

// ready answers 503 with the reasons while something keeps the relay from its work.
func (c Config) ready(w http.ResponseWriter, _ *http.Request) {
	h := c.Health()
	w.Header().Set("Content-Type", "application/json")
	if !h.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(h); err != nil {
		c.Logger.Debug("readiness could not be sent", "error", err)
	}
}

const (
	headerTimeout   = 5 * time.Second
	requestTimeout  = 10 * time.Second
	responseTimeout = 30 * time.Second
	idleTimeout     = time.Minute
	stopTimeout     = 2 * time.Second
	maxHeader       = 16 << 10
)

// Serve answers requests until ctx ends, and closes the listener. It returns an error when it could not go on.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      responseTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		limited, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if err := server.Shutdown(limited); err != nil {
			log.Debug("requests were cut off", "error", errors.Join(err, server.Close()))
		}
	})
	err := server.Serve(listener)
	if !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	<-stopped
	return nil
}
