package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/postrider/postrider"
)

// rules are what the server checks of each document of the outbox, whoever writes it: an event that no index holds would
// wait for ever without being seen.
var rules = bson.M{"$jsonSchema": bson.M{
	"bsonType": "object",
	"required": bson.A{
		"event_id", "aggregate_type", "aggregate_id", "event_type", "payload", "content_type",
		"status", "retry_count", "waiting", "next_attempt_at", "shard", "created_at",
	},
	"properties": bson.M{
		"_id":               bson.M{"bsonType": "objectId"},
		"event_id":          textOf(36),
		"aggregate_type":    textOf(1),
		"aggregate_id":      textOf(1),
		"event_type":        textOf(1),
		"aggregate_version": whole(1),
		"topic":             textOf(1),
		"payload":           bson.M{"bsonType": bson.A{"string", "binData"}},
		"content_type":      textOf(1),
		"headers":           bson.M{"bsonType": "object"},
		"dedup_key":         textOf(1),
		"status":            bson.M{"enum": postrider.States()},
		"retry_count":       whole(0),
		"waiting":           bson.M{"bsonType": "bool"},
		"next_attempt_at":   bson.M{"bsonType": "date"},
		"last_error":        textOf(1),
		"shard":             whole(0),
		"published_to":      bson.M{"bsonType": "string"},
		"created_at":        bson.M{"bsonType": "date"},
		"published_at":      bson.M{"bsonType": "date"},
	},
}}

func textOf(minLength int) bson.M { return bson.M{"bsonType": "string", "minLength": minLength} }
func whole(minimum int) bson.M    { return bson.M{"bsonType": bson.A{"int", "long"}, "minimum": minimum} }

// hasRules tells whether a collection has rules.
func hasRules(ctx context.Context, c *driver.Collection) (bool, error) {
	found, err := c.Database().ListCollectionSpecifications(ctx, bson.M{"name": c.Name()})
	if err != nil || len(found) == 0 {
		return false, err
	}
	_, err = found[0].Options.LookupErr("validator", "$jsonSchema")
	return err == nil, nil
}

// giveRules asks for the privilege to change the collection only where it has no rules yet.
func giveRules(ctx context.Context, c *driver.Collection, rules bson.M) error {
	if known, err := hasRules(ctx, c); err != nil || known {
		return err
	}
	return c.Database().RunCommand(ctx, bson.D{
		{Key: "collMod", Value: c.Name()},
		{Key: "validator", Value: rules},
		{Key: "validationLevel", Value: "moderate"}, // a document that broke the rules before can still become DEAD
	}).Err()
}
