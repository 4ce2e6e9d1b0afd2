package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/postrider/postrider/operator"
)

// verifyMapping compares the mapping with their table, and says what cannot be promised on such a table.
func (s *Store) verifyMapping(ctx context.Context) (findings []operator.Finding) {
	const op = "check the mapping"
	table := "table " + s.config.Table
	t, err := s.inspect(ctx, op)
	if err != nil {
		return []operator.Finding{problem(table, err)}
	}
	for _, m := range s.misfits(t) {
		findings = append(findings, operator.Finding{Level: operator.LevelError, Subject: m.subject, Message: m.message, Hint: m.hint})
	}
	if len(findings) > 0 {
		return findings
	}
	w := newTerms(s, t)
	if findings = s.verifyExpressions(ctx, op, w); len(findings) > 0 {
		return findings
	}
	for _, d := range w.doubts(s.config.Table) {
		findings = append(findings, operator.Finding{Level: operator.LevelWarning, Subject: d.subject, Message: d.message, Hint: d.hint})
	}
	if zone := s.mapping.timesWithoutZone(t); len(zone) > 0 {
		findings = append(findings, operator.Finding{Level: operator.LevelOK, Subject: table,
			Message: fmt.Sprintf("times in %s are taken as %s", strings.Join(zone, ", "), s.mapping.TimeZone)})
	}
	return findings
}

// verifyExpressions lets the database look at each piece of SQL in the mapping by itself, without reading a row, so that it is
// known where a mistake stands.
func (s *Store) verifyExpressions(ctx context.Context, op string, w *terms) (findings []operator.Finding) {
	try := func(key, expression, statement string) {
		switch err := s.parse(ctx, statement); {
		case err == nil:
		case errors.Is(s.cause(err), ErrUnreachable) || ctx.Err() != nil:
			findings = append(findings, problem("database", s.fail(op, err)))
		default:
			findings = append(findings, operator.Finding{Level: operator.LevelError, Subject: key, Message: err.Error(),
				Hint: "correct the SQL " + expression + ", which the database refuses"})
		}
	}
	for _, f := range w.m.fields() {
		for _, expression := range f.expressions() {
			try(f.key(), expression, "SELECT "+w.text(expression)+" FROM "+w.table+" LIMIT 0")
		}
	}
	if w.m.Filter != "" {
		try("outbox.filter", w.filter(), "SELECT 1 FROM "+w.table+" WHERE "+w.filter()+" LIMIT 0")
	}
	return findings
}

// parse executes a statement without parameters that returns no rows.
func (s *Store) parse(ctx context.Context, statement string) error {
	rows, err := s.db.QueryContext(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	return rows.Err()
}

// expressions are the SQL expressions in a term.
func (f field) expressions() (list []string) {
	if f.isColumn {
		return nil
	}
	parts, _ := parseTerm(*f.value) // was checked by Open
	for _, p := range parts {
		if p.expression != "" {
			list = append(list, p.expression)
		}
	}
	return list
}

// key is where a configuration file says what a field holds.
func (f field) key() string {
	if header, ok := strings.CutPrefix(f.name, "the header "); ok {
		return "outbox.headers." + header
	}
	return "outbox.columns." + f.name
}

// doubts are what a mapping leaves to be desired.
func (w *terms) doubts(table string) (list []misfit) {
	doubt := func(message, hint string) { list = append(list, misfit{"table " + table, message, hint}) }
	order := w.order()
	if columns := w.walked(); !w.t.hasIndex(columns...) {
		var quoted []string
		for _, c := range columns {
			quoted = append(quoted, w.quote(c))
		}
		doubt("no index leads to the events that wait, in their order; every read goes through more rows than it returns",
			"run: CREATE "+w.createIndex("postrider_waiting", w.t.isPartitioned())+" ON "+w.table+" ("+strings.Join(quoted, ", ")+")")
	}
	if w.column(order).nullable {
		doubt(fmt.Sprintf("the column %s, which gives the outbox order, can be NULL; an event without it has no place in the order", order),
			"give it a value in every row")
	}
	if kind := w.column(order).kind; w.m.Order == "" && (kind == kindUUID || kind == kindText) {
		doubt(fmt.Sprintf("the column %s, of type %s, need not ascend, so that no order of the events of a key can be promised", order, w.column(order).typ),
			"name the column of the outbox order")
	}
	for _, name := range []string{w.m.NextAttemptAt, w.m.CreatedAt, w.m.PublishedAt, w.m.ProcessingUntil} {
		if c := w.column(name); c.kind == kindTime && c.fractions == 0 {
			list = append(list, misfit{fmt.Sprintf("column %s of %s", name, table), "holds no fractions of a second, so that what depends on it is up to a second off",
				"nothing is lost by it; a type with fractions would be exact"})
		}
	}
	if w.m.CreatedAt == "" {
		doubt("the time at which an event was added is not known, so that the age of the oldest one that waits cannot be told",
			"name the column of that time, if there is one")
	}
	return list
}

// walked are the columns of the index that serves a read.
func (w *terms) walked() []string {
	if w.word() == "" {
		return []string{w.order()}
	}
	return []string{w.word(), w.order()}
}

// timesWithoutZone are the mapped columns whose times have no zone.
func (m *Mapping) timesWithoutZone(t *theirs) (names []string) {
	for _, f := range m.fields() {
		if c := t.columns[*f.value]; f.isColumn && c.kind == kindTime && !c.zoned {
			names = append(names, c.name)
		}
	}
	return names
}
