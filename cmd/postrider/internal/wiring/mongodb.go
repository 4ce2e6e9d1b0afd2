package wiring

import (
	"context"
	"errors"

	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/mongo"
)

func openMongoDB(c *config.Config) (*Outbox, error) {
	client, database, err := connectMongoDB(c.Outbox.DSN.Reveal())
	if err != nil {
		return nil, &ConfigError{"outbox.dsn", err}
	}
	disconnect := disconnecting(client)
	store, err := mongo.Open(client.Database(database).Collection(c.Outbox.Table), mongo.StoreConfig{
		Shards:          c.Relay.Shards,
		DeletePublished: c.Relay.OnPublished == config.DeletePublished,
		Mapping:         c.Outbox.Documents,
	})
	if err != nil {
		return nil, &ConfigError{"outbox", errors.Join(err, disconnect())}
	}
	return &Outbox{Store: store, Address: config.MaskDSN(c.Outbox.DSN.Reveal()), close: disconnect, config: c}, nil
}

func openMongoDBInbox(c *config.Config) (*Inbox, error) {
	client, database, err := connectMongoDB(c.Inbox.DSN.Reveal())
	if err != nil {
		return nil, &ConfigError{"inbox.dsn", err}
	}
	disconnect := disconnecting(client)
	collections, err := mongo.NewInboxCollections(client.Database(database).Collection(c.Inbox.Table))
	if err != nil {
		return nil, &ConfigError{"inbox.table", errors.Join(err, disconnect())}
	}
	return &Inbox{Receipts: collections, Address: config.MaskDSN(c.Inbox.DSN.Reveal()), Table: c.Inbox.Table, close: disconnect}, nil
}

func disconnecting(client *driver.Client) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		defer cancel()
		return client.Disconnect(ctx)
	}
}

// connectMongoDB makes a client, which connects by itself, and gives the name of the database.
func connectMongoDB(dsn string) (client *driver.Client, database string, err error) {
	parsed, err := connstring.ParseAndValidate(dsn)
	if err != nil {
		return nil, "", unparsable(dsn, "MongoDB", func(masked string) error {
			_, err := connstring.ParseAndValidate(masked)
			return err
		})
	}
	if parsed.Database == "" {
		return nil, "", errors.New("names no database: write mongodb://host:27017/DATABASE")
	}
	o := options.Client().ApplyURI(dsn)
	if parsed.AppName == "" {
		o.SetAppName("postrider")
	}
	if !parsed.MaxPoolSizeSet {
		o.SetMaxPoolSize(maxConnections)
	}
	if !parsed.ServerSelectionTimeoutSet {
		o.SetServerSelectionTimeout(connectTimeout)
	}
	client, err = driver.Connect(o)
	return client, parsed.Database, err
}
