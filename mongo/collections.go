package mongo

import (
	"errors"

	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// collections are the outbox and its side collections. Only outboxes of our own have keys and versions, only others failures.
type collections struct {
	events, keys, shards, relays, attempts, versions, schema, failures, holds, jobs, jobEvents *driver.Collection
}

// collectionsOf finds the side collections by the outbox's name. All are read and written as durably as it goes.
func collectionsOf(events *driver.Collection) (collections, error) {
	if events == nil || events.Name() == "" {
		return collections{}, errors.New("the outbox collection is missing")
	}
	side := events.Name()
	if side == "outbox_events" {
		side = "outbox"
	}
	named := func(name string) *driver.Collection { return durable(events.Database(), name) }
	return collections{
		events:    named(events.Name()),
		keys:      named(side + "_keys"),
		shards:    named(side + "_shards"),
		relays:    named(side + "_relays"),
		attempts:  named(side + "_attempts"),
		versions:  named(side + "_versions"),
		schema:    named(side + "_schema"),
		failures:  named(side + "_failures"),
		holds:     named(side + "_holds"),
		jobs:      named(side + "_jobs"),
		jobEvents: named(side + "_job_events"),
	}, nil
}

func durable(db *driver.Database, name string) *driver.Collection {
	return db.Collection(name, options.Collection().SetReadConcern(readconcern.Majority()).SetWriteConcern(writeconcern.Majority()).
		SetReadPreference(readpref.Primary()))
}

// ours are the collections of an outbox of our own.
func (c collections) ours() []*driver.Collection {
	return []*driver.Collection{c.events, c.keys, c.shards, c.relays, c.attempts, c.versions, c.schema, c.holds, c.jobs, c.jobEvents}
}

// beside are the collections beside one that somebody else designed.
func (c collections) beside() []*driver.Collection {
	return []*driver.Collection{c.shards, c.relays, c.attempts, c.schema, c.failures, c.holds, c.jobs, c.jobEvents}
}
