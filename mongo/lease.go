package mongo

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/relay"
)

// Renew implements relay.Store. Each of its steps is one command that commits by itself.
func (s *Store) Renew(ctx context.Context, beat relay.Heartbeat, held []relay.Lease) (relay.LeaseTable, error) {
	const op = "renew leases"
	layout, err := s.fits(ctx, op)
	if err != nil {
		return relay.LeaseTable{}, err
	}
	if layout.Shards != beat.Shards {
		return relay.LeaseTable{}, &relay.ShardCountError{Relay: beat.Name, Have: layout.Shards, Want: beat.Shards}
	}
	table, err := s.renew(ctx, beat, held)
	return table, s.fail(op, err)
}

func (s *Store) renew(ctx context.Context, beat relay.Heartbeat, held []relay.Lease) (table relay.LeaseTable, err error) {
	if table.Live, err = s.heartbeat(ctx, beat, relay.ClaimShard); err != nil {
		return table, err
	}
	s.leasing.Store(true)
	if len(held) > 0 {
		_, err := s.shards.UpdateMany(ctx, with(owned(beat.Member), anyLease(held, 0)), bson.A{bson.M{"$set": bson.M{
			"lease_until": bson.M{"$add": bson.A{"$$NOW", milliseconds(beat.LeaseTTL)}},
		}}})
		if err != nil {
			return table, err
		}
	}
	if table.Shards, err = s.leases(ctx, beat.Name); err != nil || len(table.Shards) >= beat.Shards {
		return table, err
	}
	if err := s.createShards(ctx, beat.Member); err != nil {
		return table, err
	}
	table.Shards, err = s.leases(ctx, beat.Name)
	return table, err
}

// lease is a document of the lease collection. A shard that is free has no owner and no lease_until.
type lease struct {
	Shard int    `bson:"shard"`
	Epoch int64  `bson:"epoch"`
	Owner string `bson:"owner"`

	Expired   bool      `bson:"expired"`    // computed
	SettledAt time.Time `bson:"settled_at"` // when a settle last proved it
}

func (l lease) lease() relay.Lease { return relay.Lease{Shard: l.Shard, Epoch: l.Epoch} }

// leases lists the leases of a relay name, or of all when it is empty.
func (s *Store) leases(ctx context.Context, relayName string) ([]relay.ShardLease, error) {
	docs, err := aggregate[lease](ctx, s.shards, bson.A{
		bson.M{"$match": ofName(relayName)},
		bson.M{"$sort": bson.M{"shard": 1}},
		bson.M{"$project": bson.M{"shard": 1, "epoch": 1, "owner": 1, "expired": leaseExpired}},
	})
	table := make([]relay.ShardLease, len(docs))
	for i, l := range docs {
		table[i] = relay.ShardLease{Lease: l.lease(), Owner: l.Owner, Expired: l.Expired}
	}
	return table, err
}

var (
	isFree       = bson.M{"$eq": bson.A{bson.M{"$ifNull": bson.A{"$owner", ""}}, ""}}
	leaseExpired = bson.M{"$and": bson.A{bson.M{"$not": bson.A{isFree}}, bson.M{"$lte": bson.A{"$lease_until", "$$NOW"}}}}
)

func (s *Store) createShards(ctx context.Context, m relay.Member) error {
	docs := make([]bson.M, m.Shards)
	for shard := range docs {
		docs[shard] = bson.M{
			"_id": fmt.Sprintf("%s/%d", m.Name, shard), "relay_name": m.Name, "shard": shard, "epoch": int64(0), "owner": "",
		}
	}
	_, err := s.shards.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
	if driver.IsDuplicateKeyError(err) {
		return nil // another member creates them as well
	}
	return err
}

// Acquire implements relay.Store. One command takes what is free, each document by itself; the next tells what was taken.
func (s *Store) Acquire(ctx context.Context, m relay.Member, seen []relay.Lease) ([]relay.Lease, error) {
	const op = "acquire shards"
	if len(seen) == 0 {
		return nil, nil
	}
	may := bson.M{"$or": bson.A{isFree, leaseExpired}}
	take := func(field string, value any) bson.M { return bson.M{"$cond": bson.A{may, value, "$" + field}} }
	_, err := s.shards.UpdateMany(ctx, with(bson.M{"relay_name": m.Name}, anyLease(seen, 0)), bson.A{bson.M{"$set": bson.M{
		"owner":       take("owner", literal(m.ID)),
		"epoch":       take("epoch", bson.M{"$add": bson.A{"$epoch", int64(1)}}),
		"lease_until": take("lease_until", bson.M{"$add": bson.A{"$$NOW", milliseconds(m.LeaseTTL)}}),
	}}})
	if err != nil {
		return nil, s.fail(op, err)
	}
	taken, err := find[lease](ctx, s.shards, with(owned(m), anyLease(seen, 1)), options.Find().SetSort(ascending("shard")))
	leases := make([]relay.Lease, len(taken))
	for i, l := range taken {
		leases[i] = l.lease()
	}
	return leases, s.fail(op, err)
}

// Release implements relay.Store.
func (s *Store) Release(ctx context.Context, m relay.Member, held []relay.Lease) error {
	if len(held) == 0 {
		return nil
	}
	_, err := s.shards.UpdateMany(ctx, with(owned(m), anyLease(held, 0)),
		bson.M{"$set": bson.M{"owner": ""}, "$unset": bson.M{"lease_until": ""}})
	return s.fail("release shards", err)
}

// Leave implements relay.Store.
func (s *Store) Leave(ctx context.Context, m relay.Member) error {
	_, err := s.relays.DeleteOne(ctx, bson.M{"_id": m.ID})
	return s.fail("leave", err)
}

// owned selects the leases of a member.
func owned(m relay.Member) bson.M { return bson.M{"relay_name": m.Name, "owner": m.ID} }

// ofName selects what belongs to a relay name, or everything when it is empty.
func ofName(relayName string) bson.M {
	if relayName == "" {
		return bson.M{}
	}
	return bson.M{"relay_name": relayName}
}

// anyLease selects leases by shard and epoch; ahead is added to the epochs.
func anyLease(leases []relay.Lease, ahead int64) bson.M {
	either := make(bson.A, len(leases))
	for i, l := range leases {
		either[i] = bson.M{"shard": l.Shard, "epoch": l.Epoch + ahead}
	}
	return bson.M{"$or": either}
}

// literal keeps a text in a pipeline from being read as an expression.
func literal(text string) bson.M { return bson.M{"$literal": text} }

func milliseconds(d time.Duration) int64 { return d.Milliseconds() }
