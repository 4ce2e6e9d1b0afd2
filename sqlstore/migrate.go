package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Init creates the tables or brings them up to this version, in one transaction. It may be called at any time and
// by several processes at once, and changes nothing when nothing is to be done. It refuses tables of a newer
// version, and a Config with other shards or another payload than the tables have; the error is relay.ErrSchema.
func (s *Store) Init(ctx context.Context) error {
	const op = "create tables"
	found, err := s.fits(ctx, op)
	if err == nil {
		return s.checkConfig(op, found)
	}
	err = s.repeat(ctx, op, func() error {
		return s.inTx(ctx, func(tx *sql.Tx) error { return s.migrate(ctx, op, tx) })
	})
	if err != nil {
		return err
	}
	_, err = s.fits(ctx, op)
	return err
}

// migrate runs the migrations that are missing. The first of them locks and creates the table that lists the others.
func (s *Store) migrate(ctx context.Context, op string, tx *sql.Tx) error {
	migrations, err := s.migrations()
	if err != nil {
		return err
	}
	if err := apply(ctx, tx, migrations[0]); err != nil {
		return err
	}
	var found []schema
	if err := execute(ctx, tx, s.queries["schema"][0], into(&found, scanSchema), nil); err != nil {
		return err
	}
	done := 0
	if len(found) > 0 {
		if err := s.checkUpgradable(op, found[0]); err != nil {
			return err
		}
		if err := s.checkConfig(op, found[0]); err != nil {
			return err
		}
		done = found[0].version
	}
	for _, migration := range migrations[done+1:] {
		if err := apply(ctx, tx, migration); err != nil {
			return err
		}
	}
	return nil
}

// checkConfig refuses a configuration that the existing tables were not laid out for.
func (s *Store) checkConfig(op string, found schema) error {
	if found.shards != s.config.Shards {
		return s.unfit(op, fmt.Sprintf("set relay.shards to %d", found.shards),
			"they are laid out for %d shards and cannot be changed to %d", found.shards, s.config.Shards)
	}
	if found.payload != s.config.Payload {
		return s.unfit(op, fmt.Sprintf("use payload %s", found.payload),
			"the payload column is %s and cannot be changed to %s", found.payload, s.config.Payload)
	}
	return nil
}

// Print writes the SQL of all migrations as a script for the database's own client. It does not connect.
func (s *Store) Print(w io.Writer) error {
	migrations, err := s.migrations()
	if err != nil {
		return err
	}
	var script strings.Builder
	script.WriteString("BEGIN;\n\n")
	for _, m := range migrations {
		script.WriteString("-- " + m.name + "\n" + m.text + "\n")
	}
	script.WriteString("COMMIT;\n")
	_, err = io.WriteString(w, script.String())
	return err
}

// migration is one file; its place in the list is the version that it leads to.
type migration struct {
	name string
	text string
}

func (s *Store) migrations() ([]migration, error) {
	names, err := fs.Glob(files, s.dialect.name+"/migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var list []migration
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		filled, err := fill(string(text), s.tokens())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, migration{strings.TrimSuffix(path.Base(name), ".sql"), filled})
	}
	return list, nil
}

func apply(ctx context.Context, tx *sql.Tx, m migration) error {
	for _, statement := range split(m.text) {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
	}
	return nil
}
