package sqlstore

import (
	"context"
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
	for _, d := range newTerms(s, t).doubts(s.config.Table) {
		findings = append(findings, operator.Finding{Level: operator.LevelWarning, Subject: d.subject, Message: d.message, Hint: d.hint})
	}
	if zone := s.mapping.timesWithoutZone(t); len(zone) > 0 {
		findings = append(findings, operator.Finding{Level: operator.LevelOK, Subject: table,
			Message: fmt.Sprintf("times in %s are taken as %s", strings.Join(zone, ", "), s.mapping.TimeZone)})
	}
	return findings
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
