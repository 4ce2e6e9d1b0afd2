package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Init creates the tables or brings them up to this version, in one transaction. It may be called at any time and
// by several processes at once, and changes nothing when nothing is to be done. It refuses tables of a newer
// version, a Config with other shards or another payload than the tables have, and a table that does not fit the mapping;
// the error is relay.ErrSchema. Of a mapped table it creates the side tables only.
func (s *Store) Init(ctx context.Context) error {
	const op = "create tables"
	found, err := s.fits(ctx, op)
	if err == nil {
		return s.checkConfig(op, found)
	}
	if s.mapping != nil {
		if _, err := s.theirTable(ctx, op); err != nil {
			return err
		}
	}
	err = s.repeat(ctx, op, func() error {
		if s.dialect.stepwise {
			return s.locked(ctx, op, func(conn *sql.Conn) error { return s.migrate(ctx, op, conn) })
		}
		return s.inTx(ctx, func(tx *sql.Tx) error { return s.migrate(ctx, op, tx) })
	})
	if err != nil {
		return err
	}
	_, err = s.fits(ctx, op)
	return err
}

// migrate runs the migrations that are missing. The first of them locks and creates the table that lists the others.
func (s *Store) migrate(ctx context.Context, op string, on executor) error {
	migrations, err := s.migrations()
	if err != nil {
		return err
	}
	if err := s.apply(ctx, on, migrations[0]); err != nil {
		return err
	}
	var found []schema
	if err := s.execute(ctx, on, s.queries["schema"][0], into(&found, scanSchema), nil); err != nil {
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
		if err := s.apply(ctx, on, migration); err != nil {
			return err
		}
	}
	return nil
}

// checkConfig refuses a configuration that the existing tables were not laid out for. A payload column that is theirs was laid
// out by nobody here: the configuration only says how to read it.
func (s *Store) checkConfig(op string, found schema) error {
	if found.shards != s.config.Shards {
		return s.unfit(op, fmt.Sprintf("set relay.shards to %d", found.shards),
			"they are laid out for %d shards and cannot be changed to %d", found.shards, s.config.Shards)
	}
	if s.mapping == nil && found.payload != s.config.Payload {
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
	begin, commit := "BEGIN;\n\n", "COMMIT;\n"
	if s.dialect.stepwise {
		begin, commit = "", ""
	}
	script.WriteString(begin)
	for _, m := range migrations {
		script.WriteString("-- " + m.name + "\n" + m.text + "\n")
	}
	script.WriteString(commit)
	_, err = io.WriteString(w, script.String())
	return err
}

// migration is one file; its place in the list is the version that it leads to.
type migration struct {
	name string
	text string
}

func (s *Store) migrations() ([]migration, error) {
	folder := s.dialect.name
	if s.mapping != nil {
		folder += "/mapped"
	}
	names, err := fs.Glob(files, folder+"/migrations/*.sql")
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

func (s *Store) apply(ctx context.Context, on executor, m migration) error {
	for _, statement := range split(m.text) {
		_, err := on.ExecContext(ctx, statement)
		if err != nil && (!s.dialect.stepwise || !isDone(err)) {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
	}
	return nil
}

// locked calls f with a connection on which no other one migrates the same tables.
func (s *Store) locked(ctx context.Context, op string, f func(*sql.Conn) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var alone []bool
	if err := s.execute(ctx, conn, s.queries["lock"][0], into(&alone, scanValue[bool]), nil); err != nil {
		return err
	}
	if !alone[0] {
		return s.unfit(op, "try again when that is done", "something else is creating or upgrading them")
	}
	return errors.Join(f(conn), s.execute(context.WithoutCancel(ctx), conn, s.queries["unlock"][0], nil, nil))
}
