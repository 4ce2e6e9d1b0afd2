package kafka

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/relay"
)

// TestRebalanceUnderLoad has members come and leave in order, each with messages in the hands of workers, while messages flow.
func TestRebalanceUnderLoad(t *testing.T) {
	t.Parallel()
	const messages = 20_000
	group := openGroup(t)
	book := &finishedBook{times: make(map[string]int)}
	published := make(chan struct{})
	go func() {
		defer close(published)
		publishFlow(t, group.Sink, group.Topic, messages)
	}()
	var leave []func()
	join := func() { // returns when the new member has work, which in a full group was revoked from another
		var finished atomic.Int64
		leave = append(leave, startMember(t, group.Join(t).Source, func(d *consumer.Delivery) {
			book.enter(d)
			finished.Add(1)
		}))
		await.True(t, time.Minute, "the new member has work", func() bool { return finished.Load() > 0 || book.count() == messages })
	}
	join()
	join()
	for flowing := true; flowing; {
		join()
		before := book.count()
		await.True(t, time.Minute, "the group goes on", func() bool { return book.count() >= min(before+500, messages) })
		leave[0]()
		leave = leave[1:]
		select {
		case <-published:
			flowing = book.count() < messages
		default:
		}
	}
	for _, l := range leave {
		l()
	}
	book.mu.Lock()
	defer book.mu.Unlock()
	if len(book.times) != messages {
		t.Errorf("%d of %d messages were finished", len(book.times), messages)
	}
	for at, times := range book.times {
		if times > 1 {
			t.Errorf("%s was finished %d times by members that left in order", at, times)
		}
	}
}

// finishedBook counts how often each message was finished.
type finishedBook struct {
	mu    sync.Mutex
	times map[string]int
}

func (b *finishedBook) enter(d *consumer.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.times[d.Message.Coordinates]++
}

func (b *finishedBook) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.times)
}

// publishFlow publishes at about 2000 messages a second.
func publishFlow(t *testing.T, sink relay.Sink, topic string, messages int) {
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for n := 0; n < messages; {
		<-pace.C
		batch := make([]relay.Message, 100)
		for i := range batch {
			batch[i] = relay.Message{EventID: fmt.Sprint(n), Topic: topic, Key: fmt.Sprint("key-", n%97), Payload: []byte("{}")}
			n++
		}
		for _, outcome := range sink.Publish(context.Background(), batch) {
			if outcome.Class != relay.ClassPublished {
				t.Errorf("publishing: %s: %v", outcome.Class, outcome.Err)
			}
		}
	}
}

// startMember has four workers finish what the source fetches, each after a moment. What it returns leaves in order: the workers
// end what they have, and the rest is returned.
func startMember(t *testing.T, source consumer.Source, finish func(*consumer.Delivery)) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	work := make(chan *consumer.Delivery, 100)
	running.Go(func() {
		defer close(work)
		for ctx.Err() == nil {
			got, err := source.Fetch(ctx, 100)
			if err != nil && ctx.Err() == nil {
				t.Errorf("Fetch: %v", err)
			}
			for _, d := range got {
				work <- d
			}
		}
	})
	for range 4 {
		running.Go(func() {
			for d := range work {
				select {
				case <-ctx.Done():
					source.Return(d)
				case <-d.Revoked:
					source.Return(d)
				default:
					time.Sleep(time.Millisecond / 2) // the effect
					finish(d)
					source.Finish(d)
				}
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
		if err := source.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}
