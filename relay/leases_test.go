package relay

import (
	"slices"
	"testing"
	"time"
)

const testTTL = 10 * time.Second

func table(owners ...string) LeaseTable {
	var t LeaseTable
	for i, owner := range owners {
		t.Shards = append(t.Shards, ShardLease{Lease: Lease{Shard: i, Epoch: 1}, Owner: owner})
	}
	return t
}

func TestLeaseCountsFromBeforeTheRenewalWasSent(t *testing.T) {
	l, start := newLeases(testTTL), time.Now()
	mine := Lease{Shard: 0, Epoch: 1}
	l.grant([]Lease{mine}, start)
	l.sync(table("me"), "me", []Lease{mine}, start.Add(3*time.Second))
	if got := l.remaining(mine, start.Add(4*time.Second)); got != 9*time.Second {
		t.Errorf("%v are left, want 9s", got)
	}
	if got := l.remaining(Lease{Shard: 0, Epoch: 2}, start); got != 0 {
		t.Errorf("a lease of another epoch has %v left", got)
	}
}

func TestLostLeasesAreForgotten(t *testing.T) {
	l, now := newLeases(testTTL), time.Now()
	l.grant([]Lease{{0, 1}, {1, 1}, {2, 1}}, now)
	after := table("me", "other", "me")
	after.Shards[2].Epoch = 5 // lost and taken again by somebody who calls himself like us
	if lost := l.sync(after, "me", l.renewable(), now); !slices.Equal(lost, []int{1, 2}) {
		t.Errorf("lost %v, want [1 2]", lost)
	}
	if got := l.all(); !slices.Equal(got, []Lease{{0, 1}}) {
		t.Errorf("held %v", got)
	}
}

func TestLeaseWhoseGrantGotLostIsUsableAfterItsRenewal(t *testing.T) {
	l, now := newLeases(testTTL), time.Now()
	l.sync(table("me"), "me", nil, now)
	if got := l.readable(now, time.Second); len(got) > 0 {
		t.Errorf("%v are used although they were never renewed", got)
	}
	l.sync(table("me"), "me", l.renewable(), now)
	if got := l.readable(now, time.Second); !slices.Equal(got, []Lease{{0, 1}}) {
		t.Errorf("readable %v", got)
	}
}

func TestDrainingLeaseIsNeitherReadNorRenewed(t *testing.T) {
	l, now := newLeases(testTTL), time.Now()
	l.grant([]Lease{{0, 1}, {1, 1}}, now)
	l.drain([]int{1})
	for name, got := range map[string][]Lease{"readable": l.readable(now, 0), "renewable": l.renewable()} {
		if !slices.Equal(got, []Lease{{0, 1}}) {
			t.Errorf("%s %v", name, got)
		}
	}
	if got := l.draining(); !slices.Equal(got, []Lease{{1, 1}}) {
		t.Errorf("draining %v", got)
	}
}

func TestSuspectedLeaseIsUsableAgainAfterARenewal(t *testing.T) {
	l, now := newLeases(testTTL), time.Now()
	mine := Lease{Shard: 0, Epoch: 1}
	l.grant([]Lease{mine}, now)
	l.suspect([]Lease{mine})
	if got := l.remaining(mine, now); got != 0 {
		t.Errorf("a suspected lease has %v left", got)
	}
	l.sync(table("me"), "me", []Lease{mine}, now)
	if got := l.remaining(mine, now); got != testTTL {
		t.Errorf("after the renewal %v are left", got)
	}
}
