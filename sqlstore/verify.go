package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
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
	table := "table " + s.config.Table
	settings, err := s.verifySettings(ctx)
	if err != nil {
		return append(findings, problem("database", err))
	}
	findings = append(findings, settings...)
	missing, err := s.missingPrivileges(ctx)
	if err != nil {
		return append(findings, problem(table, err))
	}
	for _, l := range missing {
		findings = append(findings, l.finding())
	}
	if slices.ContainsFunc(missing, s.blinds) {
		return findings
	}
	if s.mapping != nil {
		mapped := s.verifyMapping(ctx)
		findings = append(findings, mapped...)
		if slices.ContainsFunc(mapped, isError) {
			return findings
		}
	}
	tables, err := s.fits(ctx, "check")
	if err != nil {
		return append(findings, problem(table, err))
	}
	if err := s.checkConfig("check", tables); err != nil {
		findings = append(findings, problem(table, err))
	}
	for _, verify := range []func(context.Context, lacks) ([]operator.Finding, error){s.verifyColumns, s.verifyIndexes} {
		more, err := verify(ctx, missing)
		if err != nil {
			return append(findings, problem(table, err))
		}
		findings = append(findings, more...)
	}
	if slices.ContainsFunc(findings, isError) {
		return findings
	}
	findings = append(findings, operator.Finding{Level: operator.LevelOK, Subject: table,
		Message: fmt.Sprintf("version %d, %d shards, payload %s", tables.version, tables.shards, s.config.Payload)})
	rows, err := s.verifyRows(ctx, tables.shards)
	if err != nil {
		return append(findings, problem(table, err))
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

// verifyColumns leaves out tables of which the user may not see everything.
func (s *Store) verifyColumns(ctx context.Context, missing lacks) (findings []operator.Finding, err error) {
	var list []columnMisfit
	err = s.run(ctx, "check columns", "columns", into(&list, func(rows *sql.Rows) (c columnMisfit, err error) {
		err = rows.Scan(&c.table, &c.column, &c.want, &c.have)
		return c, err
	}))
	for _, c := range list {
		if !missing.on(c.table) {
			findings = append(findings, c.finding())
		}
	}
	return findings, err
}

// columnMisfit is a column that is missing, and then has no type, or of another type than is wanted.
type columnMisfit struct{ table, column, want, have string }

func (c columnMisfit) finding() operator.Finding {
	f := operator.Finding{Level: operator.LevelError, Subject: fmt.Sprintf("column %s of %s", c.column, unquote(c.table))}
	if c.have == "" {
		f.Message, f.Hint = "is missing", fmt.Sprintf("add it as %s, or create the tables by `postrider init`", c.want)
	} else {
		f.Message, f.Hint = fmt.Sprintf("is of type %s instead of %s", c.have, c.want), "change its type"
	}
	return f
}

// verifyIndexes leaves out tables of which the user may not see everything.
func (s *Store) verifyIndexes(ctx context.Context, missing lacks) (findings []operator.Finding, err error) {
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
		if !slices.Contains(have, name) && !missing.on(indexedTable.FindStringSubmatch(statements[name])[1]) {
			findings = append(findings, operator.Finding{
				Level: operator.LevelError, Subject: "index " + name, Message: "is missing or not valid",
				Hint: "run: " + statements[name],
			})
		}
	}
	return findings, nil
}

// indexedTable finds the table in a statement that creates an index.
var indexedTable = regexp.MustCompile(" (?:ON|TABLE) ((?:\\.?[`\"][^`\"]+[`\"])+) ")

// lack is what the user of the connection may not do.
type lack struct {
	subject    string
	table      string // without its schema; empty when the schema is closed
	object     string // in the words of a GRANT
	privileges string
	user       string // in the words of a GRANT
	isThere    bool   // for certain
}

type lacks []lack

// on says whether the user lacks a privilege on a table, whose name may be quoted and qualified.
func (l lacks) on(table string) bool {
	table = unquote(table)
	table = table[strings.LastIndex(table, ".")+1:]
	return slices.ContainsFunc(l, func(l lack) bool { return l.table == table })
}

func (s *Store) missingPrivileges(ctx context.Context) (list lacks, err error) {
	err = s.run(ctx, "check privileges", "privileges", into((*[]lack)(&list), func(rows *sql.Rows) (l lack, err error) {
		err = rows.Scan(&l.subject, &l.table, &l.object, &l.privileges, &l.user, &l.isThere)
		return l, err
	}))
	return list, err
}

func (l lack) finding() operator.Finding {
	f := operator.Finding{Level: operator.LevelError, Subject: l.subject, Message: "no privilege to " + l.privileges,
		Hint: fmt.Sprintf("run: GRANT %s ON %s TO %s", l.privileges, l.object, l.user)}
	if !l.isThere {
		f.Message += ", or there is no such table: a user without any privilege sees none, and `postrider init` creates those of Postrider"
	}
	return f
}

// blinds says whether what the user lacks keeps the tables from being looked at.
func (s *Store) blinds(l lack) bool {
	return l.table == "" || strings.Contains(l.privileges, "SELECT") &&
		(l.table == s.names.side+"_schema" || s.mapping != nil && l.table == s.names.table)
}

func (s *Store) verifyRows(ctx context.Context, shards int) (findings []operator.Finding, err error) {
	err = s.run(ctx, "look for odd rows", "odd_rows", into(&findings, func(rows *sql.Rows) (operator.Finding, error) {
		var what, sample, remedy string
		var count int64
		err := rows.Scan(&what, &count, &sample, &remedy)
		return operator.Finding{
			Level: operator.LevelWarning, Subject: "table " + s.config.Table,
			Message: fmt.Sprintf("%d or more events are %s", count, what),
			Hint:    fmt.Sprintf("look at one with `postrider events show %s` and %s", sample, remedy),
		}, err
	}), shards)
	return findings, err
}

func unquote(name string) string { return strings.NewReplacer(`"`, "", "`", "").Replace(name) }
