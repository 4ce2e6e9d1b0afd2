package sqlstore

import (
	"context"
	"database/sql"

	"github.com/postrider/postrider/relay"
)

// version is the newest of the migrations, and the one that this code works with.
const version = 4

// mappedVersion is the newest of the migrations of the side tables of a mapped table.
const mappedVersion = 3

func (s *Store) version() int {
	if s.mapping != nil {
		return mappedVersion
	}
	return version
}

// schema is what Init recorded about the tables.
type schema struct {
	version int
	table   string
	shards  int
	payload Payload
}

// fits returns what Init recorded, once that was found to fit this code, and a mapped table the mapping.
func (s *Store) fits(ctx context.Context, op string) (schema, error) {
	if known := s.schema.Load(); known != nil {
		return *known, nil
	}
	if s.mapping != nil {
		if _, err := s.theirTable(ctx, op); err != nil {
			return schema{}, err
		}
	}
	var found []schema
	if err := s.run(ctx, op, "schema", into(&found, scanSchema)); err != nil {
		return schema{}, err
	}
	if err := s.checkSchema(op, found); err != nil {
		return schema{}, err
	}
	s.schema.Store(&found[0])
	return found[0], nil
}

func (s *Store) checkSchema(op string, found []schema) error {
	if len(found) == 0 {
		return s.unfit(op, hints[relay.ErrSchema], "the tables are not complete")
	}
	if err := s.checkUpgradable(op, found[0]); err != nil {
		return err
	}
	if found[0].version < s.version() {
		return s.unfit(op, hints[relay.ErrSchema], "they have version %d, and this Postrider needs version %d", found[0].version, s.version())
	}
	return nil
}

// checkUpgradable refuses tables that Init must leave alone.
func (s *Store) checkUpgradable(op string, found schema) error {
	if found.table != s.recordedTable() {
		return s.unfit(op, "rename one of the two outboxes", "the side tables %s_* belong to the outbox %q", s.names.side, found.table)
	}
	if found.version > s.version() {
		return s.unfit(op, "use a newer Postrider", "they have version %d, and this Postrider knows no more than version %d", found.version, s.version())
	}
	return nil
}

func scanSchema(rows *sql.Rows) (f schema, err error) {
	err = rows.Scan(&f.version, &f.table, &f.shards, &f.payload)
	return f, err
}
