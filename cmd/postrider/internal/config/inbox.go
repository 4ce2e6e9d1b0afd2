package config

import "github.com/postrider/postrider/inbox"

// Inbox says where consumers keep their receipts.
type Inbox struct {
	// DSN addresses the database, as that of the outbox, which is its default.
	DSN Secret
	// Database is the kind of database that the DSN's scheme names.
	Database Database
	// Table is the table of receipts, perhaps with its schema before a dot.
	// The default is inbox_receipts.
	Table string
}

func readInbox(v value, outbox Outbox) Inbox {
	in := Inbox{DSN: outbox.DSN, Database: outbox.Database, Table: inbox.DefaultTable}
	v.object(func(o *object) {
		if dsn, database := readAddress(o); database != "" {
			in.DSN, in.Database = dsn, database
		}
		strAs(o, "table", &in.Table, parseTable)
	})
	return in
}
