package sqlstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/postrider/postrider/operator"
)

// mapTable makes the Store one of a mapped table, before its queries are loaded.
func (s *Store) mapTable(m Mapping) error {
	if s.dialect.phrases == nil {
		return fmt.Errorf("%s has no mapped tables; let Init create the outbox table", s.dialect.name)
	}
	m = m.withDefaults(s.names.table, s.config.Payload)
	s.mapping = &m
	if m.SideSchema != "" {
		s.names.sideSchema = m.SideSchema
	}
	return m.check(s.config.DeletePublished)
}

// sideTokens are those of a mapped table that are known before the table is.
func (s *Store) sideTokens() map[string]string {
	n := s.names
	return map[string]string{
		"theirs":                  s.dialect.quoteName(n.schema, n.table),
		"their_schema":            n.schema,
		"their_name":              n.table,
		"failures":                s.dialect.quoteName(n.sideSchema, n.side+"_failures"),
		"json":                    s.dialect.quoteName(n.sideSchema, n.side+"_json"),
		"index_failures_blocking": s.dialect.quoteName(n.side + "_failures_blocking"),
		"index_failures_state":    s.dialect.quoteName(n.side + "_failures_state"),
	}
}

// theirQueries fills the files that wait for what is known of their table.
func (s *Store) theirQueries(t *theirs) (map[string]query, error) {
	texts, err := s.texts()
	if err != nil {
		return nil, err
	}
	tokens := s.tokens()
	maps.DeleteFunc(texts, func(_, text string) bool { return !hasOther(text, tokens) })
	maps.Copy(tokens, t.terms.tokens())
	for _, name := range []string{"read", "claim", "oldest"} {
		if tokens[name+"_words"], err = t.terms.eachWord(texts[name+"_word"], tokens); err != nil {
			return nil, fmt.Errorf("%s_word.sql: %w", name, err)
		}
		delete(texts, name+"_word")
	}
	return fillQueries(texts, tokens)
}

func (s *Store) phrases() phrases { return s.dialect.phrases(s.sideTokens()["json"]) }

// hasOther reports whether a text leaves something open that the tokens do not fill.
func hasOther(text string, tokens map[string]string) bool {
	for _, t := range token.FindAllString(text, -1) {
		if _, ok := tokens[t[1:len(t)-1]]; !ok {
			return true
		}
	}
	return false
}

// where are the parts of a filter that depend on the mapping.
func (w *terms) where(ids ids, f operator.Filter) (conditions []string) {
	if f.State != "" {
		conditions = append(conditions, w.has(f.State))
	}
	if f.After != "" {
		conditions = append(conditions, "e.id > "+w.id(f.After))
	}
	if len(f.IDs) > 0 {
		conditions = append(conditions, w.anyID(ids, f.IDs))
	}
	return conditions
}

func (w *terms) id(id string) string { return w.constant(id, w.column(w.m.ID)) }

// anyID is the condition that an event has one of the ids or event ids. What cannot be either matches nothing.
func (w *terms) anyID(ids ids, list []string) string {
	var own, event []string
	for _, id := range list {
		if ids.valid(id) {
			own = append(own, w.id(id))
		}
		event = append(event, id)
	}
	var conditions []string
	if len(own) > 0 {
		conditions = append(conditions, "e.id IN ("+strings.Join(own, ", ")+")")
	}
	if w.m.EventID != w.m.ID {
		conditions = append(conditions, w.anyEventID(event))
	}
	if len(conditions) == 0 {
		return "1 = 0"
	}
	return "(" + strings.Join(conditions, " OR ") + ")"
}

// anyEventID is the condition that an event has one of the event ids, told so that an index on their column can serve it.
func (w *terms) anyEventID(list []string) string {
	c, plain := w.t.columns[w.m.EventID]
	kind := kindText
	if plain {
		kind = c.kind
	}
	valid := slices.DeleteFunc(slices.Clone(list), func(id string) bool { return !ids{mapped: true, kind: kind}.valid(id) })
	if !plain {
		return w.is("e.event_id", column{kind: kindText}, valid...)
	}
	return "e.id IN (SELECT " + w.quote(w.m.ID) + " FROM " + w.table + " WHERE " + w.is(w.quote(c.name), c, valid...) + ")"
}

// aside is the name of the query that does what the named one does for an outbox where there is nothing to write into
// the table itself. Their table is known.
func (s *Store) aside(name string) string {
	if s.mapping == nil {
		return name
	}
	return s.theirs.Load().terms.aside(name)
}
