package mongo

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
)

// server is what the outbox needs to know of the server that keeps it.
type server struct {
	version      string
	wire         int  // the highest version of the wire protocol that it speaks
	transactions bool // several commands commit together
	compatible   bool // it is not MongoDB, but speaks its protocol and has no transactions (FerretDB)
}

// minWire is the wire protocol of MongoDB 6.0.
const minWire = 17

// lookAt asks the server what it is.
func lookAt(ctx context.Context, db *driver.Database) (server, error) {
	var hello struct {
		SetName        string `bson:"setName"`
		Msg            string `bson:"msg"` // isdbgrid from the router of a sharded cluster
		MaxWireVersion int    `bson:"maxWireVersion"`
	}
	if err := command(ctx, db, "hello", &hello); err != nil {
		return server{}, err
	}
	var build struct {
		Version  string `bson:"version"`
		FerretDB *struct {
			Version string `bson:"version"`
		} `bson:"ferretdb"`
	}
	if err := command(ctx, db, "buildInfo", &build); err != nil {
		return server{}, err
	}
	s := server{
		version:      "MongoDB " + build.Version,
		wire:         hello.MaxWireVersion,
		transactions: hello.SetName != "" || hello.Msg == "isdbgrid",
	}
	if build.FerretDB != nil {
		s.version, s.compatible, s.transactions = "FerretDB "+build.FerretDB.Version, true, false
	}
	return s, nil
}

func command(ctx context.Context, db *driver.Database, name string, result any) error {
	return db.Client().Database("admin").RunCommand(ctx, bson.M{name: 1}).Decode(result)
}

// problem says why no outbox can be kept on the server; nil when one can.
func (s server) problem() error {
	if s.wire < minWire {
		return fmt.Errorf("%s is too old: it must be 6.0 or newer", s.version)
	}
	if !s.transactions && !s.compatible {
		return fmt.Errorf("%w: %s runs on its own", ErrNoTransactions, s.version)
	}
	return nil
}
