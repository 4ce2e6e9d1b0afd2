package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Consumer reads the messages of one Source and has them applied. It is safe for concurrent use.
type Consumer struct {
	cfg     Config
	types   map[string]bool
	running atomic.Bool
	watch   *watch

	mu     sync.Mutex
	engine *engine // of the last Run
}

// New returns the Consumer that cfg describes, or an error with every mistake in cfg. It talks to nobody.
func New(cfg Config) (*Consumer, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("consumer configuration: %w", err)
	}
	c := &Consumer{cfg: cfg, types: make(map[string]bool), watch: newWatch(&cfg)}
	for _, t := range cfg.Types {
		c.types[t] = true
	}
	return c, nil
}

// Run consumes until ctx ends, and then stops in order: nothing more is begun, what is being applied comes to its end within the
// grace period and is acknowledged, the rest is returned to the source. It returns nil after that, and an error when the Handler
// or the sink had not returned by then. While the broker, the database or the sink is out of reach it goes on trying. It may be called
// again once it has returned, unless the source was closed.
func (c *Consumer) Run(ctx context.Context) error {
	if !c.running.CompareAndSwap(false, true) {
		return errors.New("the consumer is running already")
	}
	defer c.running.Store(false)
	work, endWork := context.WithCancel(context.WithoutCancel(ctx))
	defer endWork()
	e := newEngine(work, c)
	c.mu.Lock()
	c.engine = e
	c.mu.Unlock()
	return e.run(ctx, endWork)
}

func (c *Consumer) current() *engine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engine
}
