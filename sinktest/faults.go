package sinktest

import (
	"context"
	"testing"
	"time"

	"github.com/postrider/postrider/relay"
)

// unreachable starts without a connection: nothing is blamed on a message, and nothing is sent twice later.
func unreachable(t testing.TB, f Fixture) {
	f.Proxy.Cut()
	batch := newBatch(f.Topic, 5, 20)
	outcomes := publish(t, context.Background(), f.Sink, batch)
	for i, o := range outcomes {
		if o.Class != relay.ClassUnavailable && o.Class != relay.ClassSkipped {
			t.Errorf("message %d is %s without a connection, want unavailable: %v", i, o.Class, o.Err)
		}
	}
	f.Proxy.Heal()
	resend(t, f.Sink, batch, outcomes)
	checkStored(t, f, batch)
}

// trust is the time after which no sink takes a connection for alive because it has just answered.
const trust = 100 * time.Millisecond

// cancelledOutage has connections that worked some time before, and a context that ends while they cannot be had again.
// Nothing was sent, so the answer can be told soon.
func cancelledOutage(t testing.TB, f Fixture) {
	warm := newBatch(f.Topic, 5, 5)
	mustPublish(t, f.Sink, warm)
	checkStored(t, f, warm)
	time.Sleep(trust) //nolint:forbidigo // what is written to a connection that just broke may be there, and Publish waits to be told
	f.Proxy.Cut()
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	batch := newBatch(f.Topic, 5, 20)
	start := time.Now()
	outcomes := publish(t, ctx, f.Sink, batch)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("Publish returned %s after it began, though its context ended after half a second", took)
	}
	f.Proxy.Heal()
	resend(t, f.Sink, batch, outcomes)
	checkStored(t, f, append(warm, batch...))
}

// cutInTheMiddle cuts the connections while half a batch has gone.
func cutInTheMiddle(t testing.TB, f Fixture) {
	var all []relay.Message
	for range 5 {
		batch := newBatch(f.Topic, 50, 1000)
		all = append(all, batch...)
		cut := f.Proxy.CutAfter(50 << 10)
		returned := publishInBackground(context.Background(), f.Sink, batch)
		<-cut
		f.Proxy.Heal()
		resend(t, f.Sink, batch, returned(t))
	}
	checkStored(t, f, all)
}

// lostAnswers cuts the connections when the destination has the messages and the sink does not know.
func lostAnswers(t testing.TB, f Fixture) {
	warm := newBatch(f.Topic, 5, 5)
	mustPublish(t, f.Sink, warm)
	f.Proxy.HoldAnswersAfter(1000)
	batch := newBatch(f.Topic, 10, 10)
	returned := publishInBackground(context.Background(), f.Sink, batch)
	for end := time.Now().Add(patience); len(f.Read(t)) == len(warm); {
		if time.Now().After(end) {
			t.Fatalf("nothing arrived within %s", patience)
		}
	}
	f.Proxy.Cut()
	f.Proxy.Heal()
	resend(t, f.Sink, batch, returned(t))
	checkStored(t, f, append(warm, batch...))
}

// frozenServer holds everything back until the context has ended. Publish may return then, or wait for the server;
// either way nothing may be there twice after what was not published is sent again.
func frozenServer(t testing.TB, f Fixture) {
	warm := newBatch(f.Topic, 5, 5)
	mustPublish(t, f.Sink, warm)
	f.Proxy.Freeze()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	batch := newBatch(f.Topic, 5, 100)
	returned := publishInBackground(ctx, f.Sink, batch)
	<-ctx.Done()
	f.Proxy.Heal()
	resend(t, f.Sink, batch, returned(t))
	checkStored(t, f, append(warm, batch...))
}

// crashedServer kills the server while a batch is on its way. What was acknowledged must be there afterwards.
func crashedServer(t testing.TB, f Fixture) {
	before := newBatch(f.Topic, 10, 200)
	mustPublish(t, f.Sink, before)
	during := newBatch(f.Topic, 50, 1000)
	returned := publishInBackground(context.Background(), f.Sink, during)
	f.Crash(t)
	resend(t, f.Sink, during, returned(t))
	checkStored(t, f, append(before, during...))
}
