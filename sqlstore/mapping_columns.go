package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// theirs is what was found out about a table that somebody else designed, and the statements that follow from it.
type theirs struct {
	kind    string // "table", "partitioned table", or what is no table; empty when there is none
	columns map[string]column
	indexes []index
	noZone  bool // the server does not know the time zone of the mapping
	queries map[string]query
	terms   *terms
}

// column is a column of their table.
type column struct {
	name, kind string
	typ        string // its type in the database's words
	zoned      bool   // a time with its zone
	fractions  int    // digits of the fractions of a second that a time has
	length     int    // characters that fit; 0 for any number
	highest    int64  // the highest integer that fits; 0 when it is no integer
	nullable   bool
	ascends    bool // the database gives ascending values
	words      []string
	charset    string // of text, where a column has one of its own
	collation  string
}

// index is an index of their table over all its rows.
type index struct {
	name    string
	unique  bool
	columns []string
}

// theirTable finds out about their table once.
func (s *Store) theirTable(ctx context.Context, op string) (*theirs, error) {
	if known := s.theirs.Load(); known != nil {
		return known, nil
	}
	t, err := s.inspect(ctx, op)
	if err != nil {
		return nil, err
	}
	if problems := s.misfits(t); len(problems) > 0 {
		return nil, s.unfit(op, problems[0].hint, "%s %s", problems[0].subject, problems[0].message)
	}
	t.terms = newTerms(s, t)
	if t.queries, err = s.theirQueries(t); err != nil {
		return nil, err
	}
	s.theirs.Store(t)
	return t, nil
}

func (s *Store) inspect(ctx context.Context, op string) (*theirs, error) {
	var columns []column
	if err := s.run(ctx, op, "their_columns", into(&columns, scanColumn)); err != nil {
		return nil, err
	}
	t := &theirs{columns: make(map[string]column)}
	var kinds []string
	if err := s.run(ctx, op, "their_kind", into(&kinds, scanValue[string])); err != nil {
		return nil, err
	}
	t.kind = strings.Join(kinds, "")
	for _, c := range columns {
		t.columns[c.name] = c
	}
	err := s.run(ctx, op, "their_indexes", into(&t.indexes, func(rows *sql.Rows) (i index, err error) {
		var columns []byte
		if err := rows.Scan(&i.name, &i.unique, &columns); err != nil {
			return index{}, err
		}
		return i, json.Unmarshal(columns, &i.columns)
	}))
	if err != nil {
		return nil, err
	}
	var known []bool
	if err := s.run(ctx, op, "their_zone", into(&known, scanValue[bool]), s.mapping.TimeZone); err != nil {
		return nil, err
	}
	t.noZone = !known[0]
	return t, nil
}

func scanColumn(rows *sql.Rows) (c column, err error) {
	var words []byte
	err = rows.Scan(&c.name, &c.typ, &c.kind, &c.zoned, &c.fractions, &c.length, &c.highest, &c.nullable, &c.ascends, &words, &c.charset, &c.collation)
	if err != nil {
		return column{}, err
	}
	return c, json.Unmarshal(words, &c.words)
}

// misfit is a reason why a mapping cannot work on their table.
type misfit struct{ subject, message, hint string }

// misfits compares the mapping with their table.
func (s *Store) misfits(t *theirs) (list []misfit) {
	table := s.config.Table
	if len(t.columns) == 0 {
		return []misfit{{"table " + table, "does not exist, or this user may not see it", "is its name right, with its schema?"}}
	}
	if t.kind != "table" && !t.isPartitioned() {
		return []misfit{{"table " + table, "is a " + t.kind + " and no table: its rows have no unique index, or cannot be written",
			"name the table that it shows, with a filter for the rows that belong to the outbox"}}
	}
	for _, f := range s.mapping.fields() {
		list = append(list, t.misfitsOf(f, table)...)
	}
	if t.noZone {
		list = append(list, misfit{"outbox.time_zone", strconv.Quote(s.mapping.TimeZone) + " is not known to the database",
			"correct the name, such as Asia/Seoul, write an offset, such as +09:00, or, with MySQL, load the server's tables of time zones"})
	}
	if len(list) > 0 {
		return list
	}
	if !t.isUnique(s.mapping.ID) {
		list = append(list, misfit{fmt.Sprintf("column %s of %s", s.mapping.ID, table), "has no unique index, so that one row could be settled for another", s.uniqueHint(t)})
	}
	list = append(list, s.mapping.claimMisfits(t, table)...)
	return append(list, s.mapping.wordMisfits(t.columns[s.mapping.Status], table)...)
}

// uniqueHint is what to do about an id without a unique index.
func (s *Store) uniqueHint(t *theirs) string {
	if t.isPartitioned() {
		return "name a column as the id that has one; in a partitioned table this can only be the one by which it is partitioned"
	}
	return "name a column as the id that has one, or create it: CREATE UNIQUE " + s.phrases().createIndex("postrider_id", false) + " ON " + s.config.Table + " (" + s.mapping.ID + ")"
}

func (t *theirs) isPartitioned() bool { return t.kind == "partitioned table" }

func (t *theirs) misfitsOf(f field, table string) (list []misfit) {
	parts, _ := parseTerm(*f.value) // was checked by Open
	if f.isColumn && *f.value != "" {
		parts = term{{column: *f.value}}
	}
	for _, p := range parts {
		if p.column == "" {
			continue
		}
		subject := fmt.Sprintf("column %s of %s, mapped as %s,", p.column, table, f.name)
		c, ok := t.columns[p.column]
		switch {
		case !ok:
			list = append(list, misfit{subject, "is missing", "it has the columns " + strings.Join(sortedNames(t.columns), ", ")})
		case len(p.path) > 0 && !slices.Contains([]string{kindText, kindJSON, kindJSONB}, c.kind):
			list = append(list, misfit{subject, fmt.Sprintf("is of type %s, which has no members", c.typ), "a column with members is of a text or JSON type"})
		case len(p.path) > 0:
		case f.kinds == nil && c.kind == kindBytes, f.kinds != nil && !slices.Contains(f.kinds, c.kind):
			list = append(list, misfit{subject, fmt.Sprintf("is of type %s", c.typ), "it can be of these kinds of types: " + kindNames(f.kinds)})
		}
	}
	return list
}

func kindNames(kinds []string) string {
	if kinds == nil {
		return "any but bytes"
	}
	return strings.Join(kinds, ", ")
}

func sortedNames(columns map[string]column) (names []string) {
	for name := range columns {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// wordMisfits finds words that the column of the state can never hold, or cannot tell apart.
func (m *Mapping) wordMisfits(c column, table string) (list []misfit) {
	seen := make(map[string]string)
	for _, word := range slices.Concat(m.Words.Pending, []string{m.Words.Processing, m.Words.Published, m.Words.Dead, m.Words.Discarded}) {
		if twin, ok := seen[c.fold(word)]; ok && twin != word {
			list = append(list, misfit{fmt.Sprintf("column %s of %s, mapped as status,", c.name, table),
				fmt.Sprintf("has the collation %s, for which the words %q and %q are the same", c.collation, twin, word), "the states need words that the column tells apart"})
		}
		seen[c.fold(word)] = word
		fits := true
		switch c.kind {
		case kindEnum:
			fits = slices.Contains(c.words, word)
		case kindInteger:
			_, err := strconv.ParseInt(word, 10, 64)
			fits = err == nil
		case kindBoolean:
			fits = word == "true" || word == "false"
		case kindText:
			fits = c.length == 0 || len([]rune(word)) <= c.length
		}
		if word != "" && !fits {
			list = append(list, misfit{fmt.Sprintf("column %s of %s, mapped as status,", c.name, table),
				fmt.Sprintf("is of type %s and cannot hold the word %q", c.typ, word), "leave out a word that the table does not know"})
		}
	}
	return list
}

// fold is what is left of a text when a column compares it, as far as the names of collations tell.
func (c column) fold(text string) string {
	if strings.HasSuffix(c.collation, "_ci") {
		return strings.ToLower(strings.TrimRight(text, " "))
	}
	return text
}

func (t *theirs) isUnique(column string) bool { return t.uniqueIndexOf(column) != "" }

// uniqueIndexOf is the name of a unique index of this column alone, or empty.
func (t *theirs) uniqueIndexOf(column string) string {
	for _, i := range t.indexes {
		if i.unique && len(i.columns) == 1 && i.columns[0] == column {
			return i.name
		}
	}
	return ""
}

// hasIndex says whether an index begins with these columns.
func (t *theirs) hasIndex(columns ...string) bool { return t.indexOf(columns...) != "" }

// indexOf is the name of an index that begins with these columns, or empty.
func (t *theirs) indexOf(columns ...string) string {
	for _, i := range t.indexes {
		if len(i.columns) >= len(columns) && slices.Equal(i.columns[:len(columns)], columns) {
			return i.name
		}
	}
	return ""
}
