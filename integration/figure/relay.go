package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const configuration = `
outbox: {dsn: %q}
relay: {name: figure, claim: %s, batch: %d, on_published: %s}
sinks: {main: %[5]s, other: %[5]s}
routes: [{%[6]s, topic: %[7]q}]
admin: {listen: ""}
log: {level: warn}
`

// settings of a relay: how relays share the work, what becomes of published rows, and where the route leads.
type settings struct {
	claim, published, to string
	copies               int // how many messages an event becomes
}

// byRelay drains an outbox to one sink by postrider run, from the start of the process.
func byRelay(claim, published string) func(context.Context, options, place) (result, error) {
	return settings{claim, published, "sink: main", 1}.drain
}

// byFanOut drains an outbox to two sinks.
var byFanOut = settings{"shard", "delete", "sinks: [main, other]", 2}.drain

func (s settings) drain(ctx context.Context, o options, p place) (r result, err error) {
	dir, err := os.MkdirTemp("", "figure")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, config := filepath.Join(dir, "postrider"), filepath.Join(dir, "postrider.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, configuration, p.dsn, s.claim, o.batch, s.published, p.sink, s.to, p.topic), 0o600); err != nil {
		return r, err
	}
	if err := command(ctx, "go", "build", "-o", binary, "github.com/postrider/postrider/cmd/postrider"); err != nil {
		return r, err
	}
	if err := command(ctx, binary, "init", "-c", config); err != nil {
		return r, err
	}
	if _, err := p.db.ExecContext(ctx, p.fill, o.keys, o.size, o.events); err != nil {
		return r, err
	}
	if _, err := p.db.ExecContext(ctx, p.tidy); err != nil {
		return r, err
	}
	return runRelay(ctx, o.events*s.copies, p, binary, config)
}

func runRelay(ctx context.Context, messages int, p place, binary, config string) (r result, err error) {
	relay := exec.CommandContext(ctx, binary, "run", "-c", config)
	relay.Stderr = os.Stderr
	start := time.Now()
	if err := relay.Start(); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, relay.Process.Signal(os.Interrupt), relay.Wait()) }()
	if err := awaitDrained(ctx, messages, p); err != nil {
		return r, err
	}
	took := time.Since(start)
	peak, err := peakMemory(relay.Process.Pid)
	return result{took: took, peak: peak}, err
}

// awaitDrained watches the target, which costs the database nothing, and then whether the last events are settled.
func awaitDrained(ctx context.Context, messages int, p place) error {
	err := poll(ctx, func() (bool, error) {
		n, err := p.arrived(ctx)
		return n >= messages, err
	})
	if err != nil {
		return err
	}
	return poll(ctx, func() (settled bool, err error) {
		const query = "SELECT NOT EXISTS (SELECT 1 FROM outbox_events WHERE status IN ('PENDING', 'PROCESSING'))"
		err = p.db.QueryRowContext(ctx, query).Scan(&settled)
		return settled, err
	})
}

// poll calls done every so often until it is true.
func poll(ctx context.Context, done func() (bool, error)) error {
	const pause = 50 * time.Millisecond
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
	}
}

func command(ctx context.Context, name string, arguments ...string) error {
	output, err := exec.CommandContext(ctx, name, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, output)
	}
	return nil
}

// peakMemory returns the most memory that a running process has held at once, in bytes.
func peakMemory(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			return kib << 10, err
		}
	}
	return 0, errors.New("the system does not tell the peak of a process's memory")
}
