package mongo

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// A position is the place of an event in its outbox, in microseconds since 1970. The server's clock tells
// milliseconds; the digits below count events of the same millisecond.

// reserve takes n positions in a row for a key, none of them below floor, in the transaction of ctx. It returns the first
// and the server's time.
func reserve(ctx context.Context, keys *driver.Collection, key string, n int, floor int64) (first int64, now time.Time, err error) {
	next := bson.M{"$add": bson.A{bson.M{"$ifNull": bson.A{"$position", int64(0)}}, int64(1)}}
	clock := bson.M{"$multiply": bson.A{bson.M{"$toLong": "$$NOW"}, int64(1000)}}
	update := bson.A{bson.M{"$set": bson.M{
		"position": bson.M{"$add": bson.A{bson.M{"$max": bson.A{next, clock, floor}}, int64(n - 1)}},
		"at":       "$$NOW",
	}}}
	var doc struct {
		Position int64     `bson:"position"`
		At       time.Time `bson:"at"`
	}
	err = keys.FindOneAndUpdate(ctx, bson.M{"_id": key}, update,
		options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&doc)
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("take positions of key %q from %s: %w", key, keys.Name(), err)
	}
	return doc.Position - int64(n) + 1, doc.At, nil
}

// idAt makes an _id whose order is that of the positions. It begins, like any ObjectID, with the seconds.
func idAt(position int64) (id bson.ObjectID) {
	const second, randomBits = 1_000_000, 44
	rand.Read(id[4:]) // never fails: the program ends without a source of randomness
	random := binary.BigEndian.Uint64(id[4:]) & (1<<randomBits - 1)
	binary.BigEndian.PutUint32(id[:], uint32(position/second))
	binary.BigEndian.PutUint64(id[4:], uint64(position%second)<<randomBits|random)
	return id
}
