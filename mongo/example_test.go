package mongo_test

import (
	"context"
	"log"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/relay"
)

// The order and its event are committed together, or neither is.
func ExampleOutbox_Add() {
	client, err := driver.Connect(options.Client().ApplyURI("mongodb://localhost:27017/?replicaSet=rs0"))
	if err != nil {
		log.Fatal(err)
	}
	db := client.Database("shop")
	outbox, err := mongo.New(db.Collection("outbox_events"), mongo.Config{})
	if err != nil {
		log.Fatal(err)
	}

	err = client.UseSession(context.Background(), func(ctx context.Context) error {
		_, err := driver.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
			if _, err := db.Collection("orders").InsertOne(ctx, bson.M{"_id": "17", "total": 3}); err != nil {
				return nil, err
			}
			return outbox.Add(ctx, postrider.Event{
				AggregateType: "order", AggregateID: "17", Type: "OrderPlaced", Payload: []byte(`{"total": 3}`),
			})
		})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}

// A relay publishes what was committed.
func ExampleStore() {
	ctx := context.Background()
	client, err := driver.Connect(options.Client().ApplyURI("mongodb://localhost:27017/?replicaSet=rs0"))
	if err != nil {
		log.Fatal(err)
	}
	store, err := mongo.Open(client.Database("shop").Collection("outbox_events"), mongo.StoreConfig{})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Init(ctx); err != nil { // once, by whoever may create collections
		log.Fatal(err)
	}
	var sink relay.Sink // Kafka, NATS, ...
	r, err := relay.New(relay.Config{
		Store:  store,
		Name:   "shop",
		Sinks:  []relay.NamedSink{{Name: "main", Type: "kafka", Sink: sink}},
		Routes: []relay.Route{{Sink: "main", Topic: "{aggregate_type}.events"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := r.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// A consumer counts orders, each once, however often it is delivered.
func ExampleInbox_Handler() {
	ctx := context.Background()
	client, err := driver.Connect(options.Client().ApplyURI("mongodb://localhost:27017/?replicaSet=rs0"))
	if err != nil {
		log.Fatal(err)
	}
	db := client.Database("billing")
	in, err := mongo.NewInbox(db.Collection("inbox_receipts"), mongo.InboxConfig{Consumer: "billing"})
	if err != nil {
		log.Fatal(err)
	}
	if err := in.Init(ctx); err != nil { // once, by whoever may create collections
		log.Fatal(err)
	}
	var source consumer.Source // Kafka, NATS, ...
	c, err := consumer.New(consumer.Config{
		Name: "billing", Source: source,
		Handler: in.Handler(func(ctx context.Context, fresh []inbox.Message) error { // ctx carries the transaction
			for _, m := range fresh {
				_, err := db.Collection("customers").UpdateByID(ctx, m.AggregateID(), bson.M{"$inc": bson.M{"orders": 1}}, options.UpdateOne().SetUpsert(true))
				if err != nil {
					return err
				}
			}
			return nil
		}),
	})
	if err != nil {
		log.Fatal(err)
	}
	go in.RunCleaner(ctx, nil)
	if err := c.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
