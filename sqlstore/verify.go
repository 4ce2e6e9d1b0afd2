package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/postrider/postrider/operator"
)

// Verify looks for what is wrong with the database and the tables, without changing anything and without scanning
// them. It reports errors as findings; what cannot be looked at because of an earlier finding is left out.
func (s *Store) Verify(ctx context.Context) []operator.Finding {
	server, err := s.verifyServer(ctx)
	if err != nil {
		return []operator.Finding{problem("database", err)}
	}
	findings := []operator.Finding{server}
	if s.mapping != nil {
		mapped := s.verifyMapping(ctx)
		findings = append(findings, mapped...)
		if slices.ContainsFunc(mapped, isError) {
			return findings
		}
	}
	tables, err := s.fits(ctx, "check")
	if err != nil {
		return append(findings, problem("table "+s.config.Table, err))
	}
	if err := s.checkConfig("check", tables); err != nil {
		findings = append(findings, problem("table "+s.config.Table, err))
	}
	for _, verify := range []func(context.Context) ([]operator.Finding, error){
		s.verifySettings, s.verifyColumns, s.verifyIndexes, s.verifyPrivileges,
	} {
		more, err := verify(ctx)
		if err != nil {
			return append(findings, problem("table "+s.config.Table, err))
		}
		findings = append(findings, more...)
	}
	if slices.ContainsFunc(findings, isError) {
		return findings
	}
	findings = append(findings, operator.Finding{Level: operator.LevelOK, Subject: "table " + s.config.Table,
		Message: fmt.Sprintf("version %d, %d shards, payload %s", tables.version, tables.shards, s.config.Payload)})
	rows, err := s.verifyRows(ctx, tables.shards)
	if err != nil {
		return append(findings, problem("table "+s.config.Table, err))
	}
	return append(findings, rows...)
}

func isError(f operator.Finding) bool { return f.Level == operator.LevelError }

// problem turns an error into a finding.
func problem(subject string, err error) operator.Finding {
	f := operator.Finding{Level: operator.LevelError, Subject: subject, Message: err.Error()}
	if described, ok := errors.AsType[*Error](err); ok {
		f.Message, f.Hint = described.Err.Error(), described.Hint
		if described.Cause != nil {
			f.Message = described.Cause.Error() + ": " + f.Message
		}
	}
	return f
}

func (s *Store) verifyServer(ctx context.Context) (operator.Finding, error) {
	var list []operator.Finding
	err := s.run(ctx, "connect", "server", into(&list, func(rows *sql.Rows) (operator.Finding, error) {
		var version, user string
		var supported bool
		err := rows.Scan(&version, &supported, &user)
		f := operator.Finding{Level: operator.LevelOK, Subject: "database", Message: version}
		if user != "" {
			f.Message += ", as user " + user
		}
		if !supported {
			f.Level, f.Hint = operator.LevelError, "use a newer server; the documentation lists the versions that are supported"
		}
		return f, err
	}))
	if err != nil {
		return operator.Finding{}, err
	}
	return list[0], nil
}

func (s *Store) verifySettings(ctx context.Context) (findings []operator.Finding, err error) {
	err = s.run(ctx, "check the connection", "settings", into(&findings, func(rows *sql.Rows) (operator.Finding, error) {
		f := operator.Finding{Level: operator.LevelWarning, Subject: "database"}
		err := rows.Scan(&f.Message, &f.Hint)
		return f, err
	}))
	return findings, err
}

func (s *Store) verifyColumns(ctx context.Context) (findings []operator.Finding, err error) {
	err = s.run(ctx, "check columns", "columns", into(&findings, func(rows *sql.Rows) (operator.Finding, error) {
		var table, column, want, have string
		err := rows.Scan(&table, &column, &want, &have)
		f := operator.Finding{Level: operator.LevelError, Subject: fmt.Sprintf("column %s of %s", column, unquote(table))}
		if have == "" {
			f.Message, f.Hint = "is missing", fmt.Sprintf("add it as %s, or create the tables by `postrider init`", want)
		} else {
			f.Message, f.Hint = fmt.Sprintf("is of type %s instead of %s", have, want), "change its type"
		}
		return f, err
	}))
	return findings, err
}

func (s *Store) verifyIndexes(ctx context.Context) (findings []operator.Finding, err error) {
	var have []string
	if err := s.run(ctx, "check indexes", "indexes", into(&have, scanValue[string])); err != nil {
		return nil, err
	}
	migrations, err := s.migrations()
	if err != nil {
		return nil, err
	}
	statements := make(map[string]string) // by name; a later migration replaces an index of an earlier one
	for _, m := range migrations {
		maps.Copy(statements, s.dialect.indexes(m.text))
	}
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		if !slices.Contains(have, name) {
			findings = append(findings, operator.Finding{
				Level: operator.LevelError, Subject: "index " + name, Message: "is missing or not valid",
				Hint: "run: " + statements[name],
			})
		}
	}
	return findings, nil
}

func (s *Store) verifyPrivileges(ctx context.Context) (findings []operator.Finding, err error) {
	err = s.run(ctx, "check privileges", "privileges", into(&findings, func(rows *sql.Rows) (operator.Finding, error) {
		var privilege, table string
		err := rows.Scan(&privilege, &table)
		return operator.Finding{
			Level: operator.LevelError, Subject: "table " + unquote(table), Message: "no privilege to " + privilege,
			Hint: fmt.Sprintf("run: GRANT %s ON %s TO the user in outbox.dsn", privilege, table),
		}, err
	}))
	return findings, err
}

func (s *Store) verifyRows(ctx context.Context, shards int) (findings []operator.Finding, err error) {
	err = s.run(ctx, "look for odd rows", "odd_rows", into(&findings, func(rows *sql.Rows) (operator.Finding, error) {
		var what, sample string
		var count int64
		err := rows.Scan(&what, &count, &sample)
		return operator.Finding{
			Level: operator.LevelWarning, Subject: "table " + s.config.Table,
			Message: fmt.Sprintf("%d or more events are %s", count, what),
			Hint:    fmt.Sprintf("look at one with `postrider events show %s` and correct them by SQL", sample),
		}, err
	}), shards)
	return findings, err
}

func unquote(name string) string { return strings.NewReplacer(`"`, "", "`", "").Replace(name) }
