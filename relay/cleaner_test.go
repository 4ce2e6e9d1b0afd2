package relay_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/relay"
)

// tidying counts what is asked of it.
type tidying struct {
	*memory
	cleaned, tidied atomic.Int64
}

func (s *tidying) Clean(ctx context.Context, req relay.CleanRequest) (relay.CleanResult, error) {
	s.cleaned.Add(1)
	return s.memory.Clean(ctx, req)
}

func (s *tidying) Tidy(context.Context) error {
	s.tidied.Add(1)
	return nil
}

func TestOneRelayCleansOrTidies(t *testing.T) {
	for name, retention := range map[string]time.Duration{"with a retention": time.Hour, "without one": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tidying{memory: newMemory()}
				for range 2 {
					cfg := setup(s.memory, &recorder{})
					cfg.Store, cfg.Retention, cfg.CleanEvery = s, retention, time.Minute
					_, stop := start(t, cfg)
					defer stop()
				}
				time.Sleep(10*time.Minute + time.Second)
				cleaned, tidied := s.cleaned.Load(), s.tidied.Load()
				if retention == 0 && (cleaned != 0 || tidied != 10) || retention > 0 && (cleaned != 10 || tidied != 0) {
					t.Errorf("in ten minutes two relays cleaned %d times and tidied %d times", cleaned, tidied)
				}
			})
		})
	}
}
