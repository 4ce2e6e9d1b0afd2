package keyorder_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/relay"
)

func batch(keys ...string) []relay.Message {
	var messages []relay.Message
	for _, key := range keys {
		messages = append(messages, relay.Message{Key: key})
	}
	return messages
}

func classes(b *keyorder.Batch) []relay.Class {
	var classes []relay.Class
	for _, o := range b.Outcomes() {
		classes = append(classes, o.Class)
	}
	return classes
}

func TestRoundOffersOneMessageOfEachKey(t *testing.T) {
	b := keyorder.New(batch("a", "b", "a", "", "a", "b"))
	if b.Keys() != 3 || b.Key(0) != b.Key(2) || b.Key(0) == b.Key(3) {
		t.Fatalf("keys numbered wrongly: %d keys, numbers %d %d %d", b.Keys(), b.Key(0), b.Key(2), b.Key(3))
	}
	for n, want := range [][]int{{0, 1, 3}, {2, 5}, {4}, nil} {
		round := b.Round()
		if !slices.Equal(round, want) {
			t.Fatalf("round %d offers %v, want %v", n, round, want)
		}
		for _, i := range round {
			b.Settle(i, relay.Published("test:1"))
		}
	}
	if got := b.Pending(); len(got) != 0 {
		t.Fatalf("still pending: %v", got)
	}
}

func TestFailureSkipsOnlyLaterMessagesOfItsKey(t *testing.T) {
	b := keyorder.New(batch("a", "b", "a", "b", "a"))
	b.Settle(0, relay.Published("test:1"))
	b.Settle(1, relay.Published("test:2"))
	b.Settle(2, relay.Retry(errors.New("refused")))
	if got := b.Round(); !slices.Equal(got, []int{3}) {
		t.Fatalf("after the failure of a, the round is %v, want only b's message 3", got)
	}
	b.Settle(3, relay.Published("test:3"))
	want := []relay.Class{relay.ClassPublished, relay.ClassPublished, relay.ClassRetry, relay.ClassPublished, relay.ClassSkipped}
	if got := classes(b); !slices.Equal(got, want) {
		t.Fatalf("outcomes %v, want %v", got, want)
	}
}

func TestSettleRestGivesTheReasonOncePerKey(t *testing.T) {
	b := keyorder.New(batch("a", "a", "b", "b"))
	b.Settle(0, relay.Published("test:1"))
	b.SettleRest(relay.Unavailable(errors.New("unreachable")))
	want := []relay.Class{relay.ClassPublished, relay.ClassUnavailable, relay.ClassUnavailable, relay.ClassSkipped}
	if got := classes(b); !slices.Equal(got, want) {
		t.Fatalf("outcomes %v, want %v", got, want)
	}
}

func TestPublishedBehindAFailureStaysPublished(t *testing.T) {
	b := keyorder.New(batch("a", "a"))
	b.Settle(0, relay.Retry(errors.New("refused")))
	b.Settle(1, relay.Published("test:1"))
	want := []relay.Class{relay.ClassRetry, relay.ClassPublished}
	if got := classes(b); !slices.Equal(got, want) {
		t.Fatalf("outcomes %v, want %v: what was acknowledged must be told", got, want)
	}
}

func TestRefusedInAdvance(t *testing.T) {
	b := keyorder.New(batch("a", "a", "a"))
	b.Settle(1, relay.Permanent(errors.New("too large")))
	if got := b.Round(); !slices.Equal(got, []int{0}) {
		t.Fatalf("the round is %v, want the message before the refused one", got)
	}
	b.Settle(0, relay.Published("test:1"))
	if got := b.Round(); len(got) != 0 {
		t.Fatalf("the round is %v, want nothing behind the refused message", got)
	}
	want := []relay.Class{relay.ClassPublished, relay.ClassPermanent, relay.ClassSkipped}
	if got := classes(b); !slices.Equal(got, want) {
		t.Fatalf("outcomes %v, want %v", got, want)
	}
}

func TestRefusedInAdvanceBehindAFailure(t *testing.T) {
	b := keyorder.New(batch("a", "a"))
	b.Settle(1, relay.Permanent(errors.New("too large")))
	b.Settle(0, relay.Unavailable(errors.New("unreachable")))
	want := []relay.Class{relay.ClassUnavailable, relay.ClassSkipped}
	if got := classes(b); !slices.Equal(got, want) {
		t.Fatalf("outcomes %v, want %v", got, want)
	}
}
