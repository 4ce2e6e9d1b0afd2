package wiring

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sink/outbox"
	"github.com/postrider/postrider/sqlstore"
)

// FanOut is the name of the sink that hands events over to the outboxes of their destinations. No sink of a configuration can
// have it.
const FanOut = "(fan-out)"

// Destination is the outbox of a sink that gets events which go to several sinks.
type Destination struct {
	config.Destination
	Store Store
}

func openDestinations(c *config.Config, db *sql.DB, dialect sqlstore.Dialect) (opened []Destination, err error) {
	for _, d := range c.Destinations {
		store, err := sqlstore.Open(db, dialect, sqlstore.Config{
			Table:           d.Table,
			Shards:          c.Relay.Shards,
			Payload:         sqlstore.PayloadBinary, // takes every payload byte for byte
			DeletePublished: c.Relay.OnPublished == config.DeletePublished,
		})
		if err != nil {
			return nil, err
		}
		opened = append(opened, Destination{d, store})
	}
	return opened, nil
}

// RelayConfig is what the configuration says about the relay of the destination. The caller adds its sink, hooks, logger and
// version.
func (d Destination) RelayConfig(c *config.Config) relay.Config {
	cfg := settings(c, forRelay(d.Store, c.Relay.Claim))
	for _, r := range c.RoutesTo(d.Sink) {
		cfg.Routes = append(cfg.Routes, routeOf(r))
	}
	cfg.Restore = outbox.Restore
	cfg.VersionGap = 0 // copies wait for no version
	return cfg
}

// named puts the destination before what was found at its outbox.
func (d Destination) named(findings []operator.Finding) []operator.Finding {
	for i := range findings {
		findings[i].Subject = "destination " + d.Sink + ", " + findings[i].Subject
	}
	return findings
}

// handOverTopic is the topic under which events of a route are handed over to its destinations.
func handOverTopic(c *config.Config, r config.Route) string {
	var tables []string
	for _, d := range c.Destinations {
		if slices.ContainsFunc(r.To, func(to config.Route) bool { return to.Sink == d.Sink }) {
			tables = append(tables, d.Table)
		}
	}
	return outbox.Topic(tables...)
}

// OpenFanOut opens the sink that hands events over to the destinations. committed is called with the table of each destination
// that has got some.
func (o *Outbox) OpenFanOut(committed func(table string)) (relay.NamedSink, error) {
	c := outbox.Config{DB: o.DB, Dialect: o.database.dialect, Committed: committed}
	for _, d := range o.Destinations {
		c.Tables = append(c.Tables, d.Table)
	}
	sink, err := outbox.Open(c)
	if err != nil {
		return relay.NamedSink{}, &ConfigError{"outbox.destinations", err}
	}
	return relay.NamedSink{Name: FanOut, Type: outbox.Type, Sink: sink}, nil
}

// To returns the outbox of a destination, by the name of its sink, and the outbox itself for the empty name. Anything else is a
// *DestinationError.
func (o *Outbox) To(sink string) (Store, error) {
	if sink == "" {
		return o.Store, nil
	}
	var names []string
	for _, d := range o.Destinations {
		if d.Sink == sink {
			return d.Store, nil
		}
		names = append(names, d.Sink)
	}
	return nil, &DestinationError{Sink: sink, Destinations: names}
}

// DestinationError says that a sink has no outbox of its own.
type DestinationError struct {
	Sink         string
	Destinations []string // the sinks that have one
}

func (e *DestinationError) Error() string {
	if len(e.Destinations) == 0 {
		return fmt.Sprintf("sink %s has no outbox of its own: no route names several sinks", e.Sink)
	}
	return fmt.Sprintf("sink %s has no outbox of its own; those that have one: %s", e.Sink, strings.Join(e.Destinations, ", "))
}

// JobsTo keeps the jobs over the dead letters of a destination, by the name of its sink, or of the outbox itself for the
// empty name. Anything else is a *DestinationError.
func (o *Outbox) JobsTo(sink string) (operator.JobStore, error) {
	store, err := o.To(sink)
	return destinationJobs{store, sink}, err
}

// destinationJobs tells with each job where its events are.
type destinationJobs struct {
	operator.JobStore
	sink string
}

func (d destinationJobs) CreateJob(ctx context.Context, n operator.NewJob) (operator.Job, error) {
	return d.named(d.JobStore.CreateJob(ctx, n))
}

func (d destinationJobs) Job(ctx context.Context, id string) (operator.Job, error) {
	return d.named(d.JobStore.Job(ctx, id))
}

func (d destinationJobs) SteerJob(ctx context.Context, id string, to operator.JobState, a operator.Action) (operator.Job, error) {
	return d.named(d.JobStore.SteerJob(ctx, id, to, a))
}

func (d destinationJobs) Jobs(ctx context.Context, limit int) ([]operator.Job, error) {
	jobs, err := d.JobStore.Jobs(ctx, limit)
	for i := range jobs {
		jobs[i].Destination = d.sink
	}
	return jobs, err
}

func (d destinationJobs) named(j operator.Job, err error) (operator.Job, error) {
	j.Destination = d.sink
	return j, err
}

// UnfinishedJobs lists the jobs that are RUNNING or PAUSED, those of the outbox and then those of each destination.
func (o *Outbox) UnfinishedJobs(ctx context.Context) (unfinished []operator.Job, err error) {
	const looked = 1000 // few are made in a day
	stores := []destinationJobs{{o.Store, ""}}
	for _, d := range o.Destinations {
		stores = append(stores, destinationJobs{d.Store, d.Sink})
	}
	for _, s := range stores {
		jobs, err := s.Jobs(ctx, looked)
		if err != nil {
			return nil, err
		}
		unfinished = append(unfinished, slices.DeleteFunc(jobs, func(j operator.Job) bool { return j.FinishedAt != nil })...)
	}
	return unfinished, nil
}

// Status is that of the outbox with its destinations. Its oldest event is the oldest of them all, its held keys and
// sinks are those of all.
func (o *Outbox) Status(ctx context.Context, relayName string) (operator.Status, error) {
	status, err := o.Store.Status(ctx, relayName)
	if err != nil {
		return operator.Status{}, err
	}
	reports := [][]relay.SinkState{status.Sinks}
	for _, d := range o.Destinations {
		its, err := d.Store.Status(ctx, relayName)
		if err != nil {
			return operator.Status{}, fmt.Errorf("destination %s: %w", d.Sink, err)
		}
		status.Destinations = append(status.Destinations, operator.Destination{
			Sink: d.Sink, Table: d.Table, States: its.States, Estimated: its.Estimated,
			OldestPendingSeconds: its.OldestPendingSeconds, HeldKeys: its.HeldKeys, KeyGroups: its.KeyGroups,
		})
		status.HeldKeys += its.HeldKeys
		status.OldestPendingSeconds = max(status.OldestPendingSeconds, its.OldestPendingSeconds)
		reports = append(reports, its.Sinks)
	}
	if len(o.Destinations) > 0 {
		status.Sinks = operator.WorstSinks(reports)
	}
	return status, nil
}

// DeadGroups groups the dead letters of the outbox and of its destinations by cause, the largest group first.
func (o *Outbox) DeadGroups(ctx context.Context, limit int) ([]operator.DeadGroup, error) {
	groups, err := o.Store.DeadGroups(ctx, limit)
	if err != nil {
		return nil, err
	}
	for _, d := range o.Destinations {
		its, err := d.Store.DeadGroups(ctx, limit)
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d.Sink, err)
		}
		for _, g := range its {
			g.Destination = d.Sink
			groups = append(groups, g)
		}
	}
	slices.SortStableFunc(groups, func(a, b operator.DeadGroup) int { return cmp.Compare(b.Count, a.Count) })
	return groups[:min(limit, len(groups))], nil
}

// Copy is an event in the outbox of a destination.
type Copy struct {
	Destination
	Row      operator.Row
	Attempts []operator.Attempt
}

// Copies finds an event in the outboxes of its destinations.
func (o *Outbox) Copies(ctx context.Context, eventID string) (copies []Copy, err error) {
	for _, d := range o.Destinations {
		row, err := d.Store.Event(ctx, outbox.CopyID(eventID))
		if errors.Is(err, operator.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d.Sink, err)
		}
		attempts, err := d.Store.Attempts(ctx, row.ID)
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d.Sink, err)
		}
		copies = append(copies, Copy{d, row, attempts})
	}
	return copies, nil
}

// forsaken looks for outboxes in the schema of this one that hold events, or dead letters, and that no relay serves: such as that
// of a destination that no route names any more.
func (o *Outbox) forsaken(ctx context.Context) (findings []operator.Finding) {
	store, ok := o.Store.(*sqlstore.Store)
	if !ok {
		return nil // one outbox to a database without SQL
	}
	known := []string{unqualified(o.config.Outbox.Table)}
	for _, d := range o.Destinations {
		known = append(known, unqualified(d.Table))
	}
	tables, err := store.Outboxes(ctx)
	if err != nil {
		return []operator.Finding{operator.Problem("outboxes", err.Error(), "")}
	}
	for _, table := range tables {
		if slices.Contains(known, unqualified(table)) {
			continue
		}
		f, err := o.checkUnknown(ctx, table)
		if err != nil {
			f = operator.Warning("table "+table, "is an outbox that no route leads to, and cannot be looked at: "+err.Error(), "")
		}
		if f.Message != "" {
			findings = append(findings, f)
		}
	}
	return findings
}

func unqualified(table string) string { return table[strings.LastIndexByte(table, '.')+1:] }

// checkUnknown returns a finding without a message when nothing waits in the outbox, or a relay is at work there.
func (o *Outbox) checkUnknown(ctx context.Context, table string) (f operator.Finding, err error) {
	store, err := sqlstore.Open(o.DB, o.database.store, sqlstore.Config{Table: table})
	if err != nil {
		return f, err
	}
	status, err := store.Status(ctx, "")
	if err != nil || len(status.Sinks) > 0 { // those that live relays report
		return f, err
	}
	waiting := status.States[postrider.StatePending] + status.States[postrider.StateProcessing]
	dead := status.States[postrider.StateDead]
	if waiting+dead == 0 {
		return f, nil
	}
	return operator.Warning("table "+table,
		fmt.Sprintf("is an outbox that no route leads to and no relay serves, with %d PENDING and %d DEAD", waiting, dead),
		"start the relay that it belongs to; if it is that of a sink which has left its routes, see the end of docs/fan-out.md"), nil
}
