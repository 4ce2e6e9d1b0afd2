package config

import (
	"github.com/postrider/postrider/consumer/parking"
	"github.com/postrider/postrider/inbox"
)

// Inbox says where consumers keep their receipts and park messages.
type Inbox struct {
	// DSN addresses the database, as that of the outbox, which is its default.
	DSN Secret
	// Database is the kind of database that the DSN's scheme names.
	Database Database
	// Table is the table of receipts, perhaps with its schema before a dot.
	// The default is inbox_receipts.
	Table string
	// Parked is the table of parked messages, perhaps with its schema before a dot.
	// The default is inbox_parked.
	Parked string
}

func readInbox(v value, outbox Outbox) Inbox {
	in := Inbox{DSN: outbox.DSN, Database: outbox.Database, Table: inbox.DefaultTable, Parked: parking.DefaultTable}
	v.object(func(o *object) {
		if dsn, database := readAddress(o); database != "" {
			in.DSN, in.Database = dsn, database
		}
		strAs(o, "table", &in.Table, parseTable)
		strAs(o, "parked", &in.Parked, parseTable)
	})
	return in
}
