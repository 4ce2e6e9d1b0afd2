package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that ends with the first SIGINT or SIGTERM. The second one ends the process at once.
func untilSignal(stderr io.Writer) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
			return
		}
		<-signals
		fmt.Fprintln(stderr, "postrider: second signal: ending at once")
		os.Exit(exitFailed)
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}
