package mongo

import (
	"errors"
	"fmt"
	"sync/atomic"

	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

var (
	_ relay.Store       = (*Store)(nil)
	_ relay.Tidier      = (*Store)(nil)
	_ relay.JobStepper  = (*Store)(nil)
	_ operator.JobStore = (*Store)(nil)
	_ operator.Store    = (*Store)(nil)
)

// StoreConfig says how a Store keeps its outbox. Every zero value means the default that its comment gives.
type StoreConfig struct {
	// Shards is the number of hash slots of keys that Init lays the outbox out for, 1 to 32767. Default DefaultShards.
	// An outbox that exists keeps its number.
	Shards int

	// DeletePublished makes Settle delete published events instead of keeping them as PUBLISHED. The database
	// then forgets their deduplication keys at once.
	DeletePublished bool

	// Mapping says how the documents are laid out, in a collection that somebody else designed. Default: as Init lays out
	// an outbox of our own.
	Mapping *Mapping
}

// Store keeps an outbox in MongoDB for relays and operators. It implements relay.Store, operator.Store and operator.JobStore, and is safe for
// concurrent use. It holds nothing that needs to be closed.
type Store struct {
	collections
	config  StoreConfig
	theirs  *theirs // nil for an outbox of our own
	flight  flight
	layout  atomic.Pointer[layout] // set once the collections were found to fit
	leasing atomic.Bool            // a relay works here that leases shards
}

// Open returns a Store for the outbox in the collection events, or an error with every mistake in config. It does not talk
// to the server; Init creates the collections. The caller disconnects the client after the Store was last used.
func Open(events *driver.Collection, config StoreConfig) (*Store, error) {
	if config.Shards == 0 {
		config.Shards = DefaultShards
	}
	all, err := collectionsOf(events)
	if config.Shards < 1 || config.Shards > maxShards {
		err = errors.Join(err, fmt.Errorf("Shards is %d: it must be 1 to %d", config.Shards, maxShards))
	}
	s := &Store{collections: all, config: config}
	if config.Mapping != nil && events != nil {
		mapping := config.Mapping.withDefaults(events.Name())
		if mistakes := mapping.check(config.DeletePublished); mistakes != nil {
			err = errors.Join(err, mistakes)
		} else if err == nil {
			s.theirs = newTheirs(mapping, s.failures.Name())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open outbox: %w", err)
	}
	return s, nil
}
