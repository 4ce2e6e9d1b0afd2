package relay

import "time"

// Hooks let a program watch a relay, for metrics and traces. Any field may be nil. Hooks are called from several
// goroutines, on the hot path: they must be quick and must not block.
type Hooks struct {
	// Read is called after each read with the number of events that it returned.
	Read func(events int, took time.Duration)
	// Published is called after each Publish call with the number of events of each class.
	Published func(sink string, outcomes map[Class]int, took time.Duration)
	// Delivered is called for each event that the sink acknowledged; age is the time since created_at.
	Delivered func(sink string, age time.Duration)
	// Settled is called after each settle with what was written and what was lost to another owner: with ClaimRow, the lost
	// claims.
	Settled func(written, lost int, took time.Duration)
	// Dead is called for each event that became DEAD.
	Dead func(sink string, event *Event, reason string)
	// Leases is called when the number of shards held changes.
	Leases func(held int)
	// LeaseLost is called for each shard that another relay took from this one.
	LeaseLost func(shard int)
	// Circuit is called when a sink's circuit changes.
	Circuit func(SinkState)
	// Measured is called with each measurement of the backlog.
	Measured func(Backlog)
	// Cleaned is called after each chunk that deleted something.
	Cleaned func(deleted int)
	// Failed is called when one of the relay's loops meets an error: lease, read, settle, clean, backlog, jobs.
	Failed func(loop string, err error)
}

func (h *Hooks) read(events int, took time.Duration) {
	if h.Read != nil {
		h.Read(events, took)
	}
}

func (h *Hooks) published(sink string, outcomes map[Class]int, took time.Duration) {
	if h.Published != nil {
		h.Published(sink, outcomes, took)
	}
}

func (h *Hooks) delivered(sink string, age time.Duration) {
	if h.Delivered != nil {
		h.Delivered(sink, age)
	}
}

func (h *Hooks) settled(written, lost int, took time.Duration) {
	if h.Settled != nil {
		h.Settled(written, lost, took)
	}
}

func (h *Hooks) dead(sink string, event *Event, reason string) {
	if h.Dead != nil {
		h.Dead(sink, event, reason)
	}
}

func (h *Hooks) leases(held int) {
	if h.Leases != nil {
		h.Leases(held)
	}
}

func (h *Hooks) leaseLost(shard int) {
	if h.LeaseLost != nil {
		h.LeaseLost(shard)
	}
}

func (h *Hooks) circuit(s SinkState) {
	if h.Circuit != nil {
		h.Circuit(s)
	}
}

func (h *Hooks) measured(b Backlog) {
	if h.Measured != nil {
		h.Measured(b)
	}
}

func (h *Hooks) cleaned(deleted int) {
	if h.Cleaned != nil {
		h.Cleaned(deleted)
	}
}

func (h *Hooks) failed(loop string, err error) {
	if h.Failed != nil {
		h.Failed(loop, err)
	}
}
