package daemon

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/operator"
)

const (
	verifyTimeout = 15 * time.Second
	checkTimeout  = time.Minute
	firstPause    = 500 * time.Millisecond
	longestPause  = 10 * time.Second
)

// awaitOutbox returns when the outbox was found to be fit, or ctx has ended. A database that cannot be reached is
// asked again; whatever else is wrong is an error.
func (d *daemon) awaitOutbox(ctx context.Context) error {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		err := d.verify(ctx)
		if err == nil {
			d.waiting.Store("")
			return nil
		}
		if !waitingHelps(err) {
			return err
		}
		d.waiting.Store("the outbox cannot be reached: " + err.Error())
		d.Logger.Warn("the outbox cannot be reached; trying again", "after", pause, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

func waitingHelps(err error) bool {
	return wiring.IsUnreachable(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// verify asks for the backlog first, because its error tells whether waiting helps.
func (d *daemon) verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	if _, err := d.outbox.Store.Backlog(ctx); err != nil {
		return err
	}
	var problems []error
	for _, f := range d.outbox.Verify(ctx) {
		if f.Level == operator.LevelError {
			problems = append(problems, errors.New(wiring.Line(f)))
		} else {
			d.log(f)
		}
	}
	return errors.Join(problems...)
}

// warnOfSinks logs what is wrong with the sinks and the routes to them: a topic can be created at any time.
func (d *daemon) warnOfSinks(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for _, f := range append(wiring.CheckRoutes(d.config), d.sinks.Check(ctx, d.config.Deliveries())...) {
		if ctx.Err() == nil {
			d.log(f)
		}
	}
}

// log tells of a finding, which is no reason to stop.
func (d *daemon) log(f operator.Finding) {
	level := slog.LevelDebug
	if f.Level != operator.LevelOK {
		level = slog.LevelWarn
	}
	d.Logger.Log(context.Background(), level, "found by a check", "subject", f.Subject, "message", f.Message, "hint", f.Hint)
}
