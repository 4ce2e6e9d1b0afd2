package sqlstore

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/postrider/postrider"
)

// phrases are the words of a database for what statements about a mapped table leave open. value is any SQL expression.
type phrases interface {
	quote(column string) string
	literal(text string) string
	constant(text string, c column) string            // text, to be compared with a column
	text(value string) string                         // value as text
	value(c column) string                            // what a column holds, as text
	cast(value string, c column) string               // text as a value of a column's type
	null(kind string) string                          // NULL of a kind of type
	member(c column, path []string, json bool) string // NULL where there is none; as JSON text, or a string's text
	object(members map[string]string) string          // JSON object of terms that are text, NULLs as null
	list(a, b string) string                          // JSON array of two texts or JSON values
	shard(key string, shards int) string
	moment(c column, zone string) string                // the instant that a column holds
	store(instant string, c column, zone string) string // an instant as a column holds it
	roundUp(instant string, c column) string            // an instant that a column can hold, not before the given one
	now() string
	later(seconds string) string
	cut(text string, c column) string                 // text as it fits into a column
	sideKey(key string) string                        // a key as the side table of failures holds it
	useIndex(name string) string                      // stands behind the name of a table; empty where the database finds the index by itself
	createIndex(name string, partitioned bool) string // the words after CREATE and before ON; some databases name it themselves
}

// terms writes the parts of statements that follow from a mapping and the columns of the table.
type terms struct {
	phrases
	m       *Mapping
	t       *theirs
	table   string // quoted
	side    string // side table of failures, quoted
	deletes bool
	shards  int
}

func newTerms(s *Store, t *theirs) *terms {
	side := s.sideTokens()
	return &terms{phrases: s.phrases(), m: s.mapping, t: t, table: side["theirs"], side: side["failures"],
		deletes: s.config.DeletePublished, shards: s.config.Shards}
}

func (w *terms) column(name string) column { return w.t.columns[name] }

// given is the SQL of a term as text, empty where it is NULL.
func (w *terms) given(text string) string { return "coalesce(" + w.plain(text) + ", '')" }

// plain is the SQL of a term as text.
func (w *terms) plain(text string) string { return w.sql(text, false) }

// sql writes a term: members as JSON text, or as the text that they hold.
func (w *terms) sql(text string, json bool) string {
	parts, _ := parseTerm(text) // was checked by Open
	var values []string
	for _, p := range parts {
		switch {
		case p.constant != nil:
			values = append(values, w.text(w.literal(*p.constant)))
		case p.expression != "":
			values = append(values, w.text(p.expression))
		case len(p.path) > 0:
			values = append(values, w.member(w.column(p.column), p.path, json))
		default:
			values = append(values, w.value(w.column(p.column)))
		}
	}
	switch len(values) {
	case 0:
		return w.null(kindText)
	case 1:
		return values[0]
	default:
		return "coalesce(" + strings.Join(values, ", ") + ")"
	}
}

// payload keeps bytes as they are.
func (w *terms) payload() string {
	if c, ok := w.t.columns[w.m.Payload]; ok && c.kind == kindBytes {
		return w.quote(c.name)
	}
	return w.sql(w.m.Payload, true)
}

// headers is a JSON array of the text of the headers' object and an object of those that have terms of their own.
func (w *terms) headers() string {
	if w.m.Headers == "" && len(w.m.HeaderTerms) == 0 {
		return w.null(kindText)
	}
	members := make(map[string]string)
	for name, term := range w.m.HeaderTerms {
		members[name] = w.plain(term)
	}
	return w.text(w.list(w.sql(w.m.Headers, true), w.object(members)))
}

func (w *terms) version() string {
	if w.m.AggregateVersion == "" {
		return w.null(kindInteger)
	}
	return w.cast(w.quote(w.m.AggregateVersion), column{kind: kindInteger, typ: "bigint"})
}

// order is the column of the outbox order. Times order better than ids that do not ascend.
func (w *terms) order() string {
	switch created := w.column(w.m.CreatedAt); {
	case w.m.Order != "":
		return w.m.Order
	case w.column(w.m.ID).kind != kindInteger && created.name != "" && !created.nullable:
		return created.name
	default:
		return w.m.ID
	}
}

// word is the column that tells the state, or empty.
func (w *terms) word() string {
	if w.m.Status != "" {
		return w.m.Status
	}
	return w.m.PublishedAt
}

func (w *terms) moments(name string) string {
	if name == "" {
		return w.null(kindTime)
	}
	return w.moment(w.column(name), w.m.TimeZone)
}

// is the condition that a column, under the name given, holds one of the texts; empty ones are left out.
func (w *terms) is(name string, c column, texts ...string) string {
	var constants []string
	for _, text := range texts {
		if text != "" {
			constants = append(constants, w.constant(text, c))
		}
	}
	if len(constants) == 0 {
		return "1 = 0"
	}
	return name + " IN (" + strings.Join(constants, ", ") + ")"
}

// says is the condition that the column of the state, under the name given, says one of the words.
func (w *terms) says(name string, words ...string) string {
	return w.is(name, w.column(w.m.Status), words...)
}

// isPending is the condition that a row of theirs waits, its column of the state being called name.
func (w *terms) isPending(name string) string {
	switch {
	case w.m.Status != "":
		return w.says(name, w.m.Words.Pending...)
	case w.m.PublishedAt != "":
		return name + " IS NULL"
	default:
		return "1 = 1"
	}
}

// state is the state that a row of theirs tells, or ” for a word that nobody knows.
func (w *terms) state(name string) string {
	if w.m.Status == "" && w.m.PublishedAt == "" {
		return "'PENDING'"
	}
	sql := "CASE WHEN " + w.isPending(name) + " THEN 'PENDING'"
	if w.m.Status == "" {
		return sql + " ELSE 'PUBLISHED' END"
	}
	for _, known := range []struct{ word, state string }{
		{w.m.Words.Processing, "PROCESSING"}, {w.m.Words.Published, "PUBLISHED"}, {w.m.Words.Dead, "DEAD"}, {w.m.Words.Discarded, "DISCARDED"},
	} {
		if known.word != "" {
			sql += " WHEN " + w.says(name, known.word) + " THEN '" + known.state + "'"
		}
	}
	return sql + " ELSE '' END"
}

// settledState is the state for which side rows hold: who sends an event has not settled it yet.
func (w *terms) settledState(name string) string {
	if w.m.Words.Processing == "" {
		return w.state(name)
	}
	return "CASE WHEN " + w.says(name, w.m.Words.Processing) + " THEN 'PENDING' ELSE " + w.state(name) + " END"
}

// theirDead is the state that a row of theirs tells once the event is DEAD.
func (w *terms) theirDead() string {
	if w.m.Words.Dead != "" {
		return "DEAD"
	}
	return "PENDING"
}

func (w *terms) theirDiscarded() string {
	switch w.m.Words.Discarded {
	case "":
		return w.theirDead()
	case w.m.Words.Dead:
		return "DEAD"
	default:
		return "DISCARDED"
	}
}

func (w *terms) filter() string {
	if w.m.Filter == "" {
		return "1 = 1"
	}
	return "(" + oneLine(w.m.Filter) + ")"
}

// rows is a subquery of the rows of theirs under our names for their columns. hint stands behind the table's name.
func (w *terms) rows(hint string) string {
	word := w.null(kindText)
	if w.word() != "" {
		word = w.quote(w.word())
	}
	key := w.given(w.m.key())
	retries := "0"
	if w.m.RetryCount != "" {
		retries = w.quote(w.m.RetryCount)
	}
	columns := []struct{ sql, name string }{
		{w.quote(w.m.ID), "id"}, {w.value(w.column(w.m.ID)), "ref"}, {w.quote(w.order()), "ord"}, {word, "word"},
		{w.state(word), "their_state"}, {w.settledState(word), "settled_state"}, {w.given(w.m.EventID), "event_id"}, {w.given(w.m.AggregateType), "aggregate_type"},
		{w.given(w.m.AggregateID), "aggregate_id"}, {key, "event_key"}, {w.given(w.m.EventType), "event_type"}, {w.version(), "aggregate_version"}, {w.plain(w.m.Topic), "topic"},
		{w.payload(), "payload"}, {w.given(w.m.ContentType), "content_type"}, {w.headers(), "headers"}, {w.plain(w.m.DedupKey), "dedup_key"},
		{retries, "their_retry_count"}, {w.moments(w.m.NextAttemptAt), "their_next_attempt_at"}, {w.plain(w.m.LastError), "their_last_error"},
		{w.plain(w.m.PublishedTo), "published_to"}, {w.moments(w.m.CreatedAt), "created_at"}, {w.moments(w.m.PublishedAt), "published_at"},
		{w.plain(w.m.ClaimToken), "claim_token"}, {w.moments(w.m.ProcessingUntil), "processing_until"}, {w.shard(key, w.shards), "shard"},
	}
	var list []string
	for _, c := range columns {
		list = append(list, c.sql+" AS "+c.name)
	}
	return "(SELECT " + strings.Join(list, ", ") + " FROM " + w.table + hint + " WHERE " + w.filter() + ")"
}

// events is a subquery of the events with the state that they really have. A side row of another key is that of a row
// which is gone, and whose id was given to a new one.
func (w *terms) events() string {
	return "(SELECT r.*, CASE WHEN f.state <> 'PENDING' THEN f.state ELSE r.their_state END AS status, f.event IS NOT NULL AS failed," +
		" coalesce(f.retry_count, r.their_retry_count) AS retry_count, coalesce(f.next_attempt_at, r.their_next_attempt_at) AS next_attempt_at," +
		" CASE WHEN f.event IS NOT NULL THEN f.last_error WHEN r.their_state = 'DEAD' THEN r.their_last_error END AS last_error" +
		" FROM " + w.rows("") + " r LEFT JOIN " + w.side + " f ON f.event = r.ref AND f.event_key = " + w.sideKey("r.event_key") + " AND f.their_state = r.settled_state)"
}

// has is the condition that an event e of events is in a state, told so that indexes can serve it.
func (w *terms) has(state postrider.State) string {
	is := "e.status = '" + string(state) + "'"
	switch state {
	case postrider.StatePending:
		return w.isPending("e.word") + " AND " + is
	case postrider.StateProcessing:
		return w.among(w.m.Words.Processing) + " AND " + is
	case postrider.StatePublished:
		if w.m.Status == "" {
			return "NOT (" + w.isPending("e.word") + ") AND " + is
		}
		return w.among(w.m.Words.Published) + " AND " + is
	default: // a side row alone can say so
		recorded := "SELECT " + w.cast("f.event", w.column(w.m.ID)) + " AS id FROM " + w.side + " f WHERE f.state = '" + string(state) + "'"
		if word := w.wordOf(state); word != "" {
			recorded += " UNION ALL SELECT " + w.quote(w.m.ID) + " FROM " + w.table + " WHERE " + w.says(w.quote(w.m.Status), word)
		}
		return "e.id IN (SELECT id FROM (" + recorded + ") postrider_recorded) AND " + is
	}
}

func (w *terms) among(word string) string { return w.says("e.word", word) }

func (w *terms) wordOf(state postrider.State) string {
	if state == postrider.StateDead {
		return w.m.Words.Dead
	}
	return w.m.Words.Discarded
}

// assignments are what SET says about columns of theirs; an unmapped column has none.
type assignments struct {
	w    *terms
	list []string
}

func (a *assignments) set(column, value string) {
	if column != "" {
		a.list = append(a.list, a.w.quote(column)+" = "+value)
	}
}

func (a *assignments) time(column, instant string) {
	if column != "" {
		a.set(column, a.w.store(instant, a.w.column(column), a.w.m.TimeZone))
	}
}

func (a *assignments) text(column, value string) {
	if column != "" {
		a.set(column, a.w.cut(value, a.w.column(column)))
	}
}

// none clears a text.
func (a *assignments) none(column string) {
	if a.w.column(column).nullable {
		a.set(column, "NULL")
	} else {
		a.set(column, "''")
	}
}

func (a *assignments) String() string { return strings.Join(a.list, ", ") }

func (w *terms) setPublished() string {
	a := assignments{w: w}
	a.published()
	return a.String()
}

func (a *assignments) published() {
	w := a.w
	if w.m.Status != "" {
		a.set(w.m.Status, w.constant(w.m.Words.Published, w.column(w.m.Status)))
	}
	a.time(w.m.PublishedAt, w.now())
	a.time(w.m.UpdatedAt, w.now())
	a.text(w.m.PublishedTo, "postrider_published_to")
	a.none(w.m.LastError)
}

func (w *terms) setFailed() string {
	a := assignments{w: w}
	if w.m.Words.Dead != "" {
		a.set(w.m.Status, "CASE postrider_state WHEN 'DEAD' THEN "+w.cast(w.literal(w.m.Words.Dead), w.column(w.m.Status))+
			" ELSE "+w.quote(w.m.Status)+" END")
	}
	a.failed()
	return a.String()
}

// failed sets what shows a failure, but for the state.
func (a *assignments) failed() {
	w := a.w
	if w.m.RetryCount != "" {
		a.set(w.m.RetryCount, least("postrider_retry_count", w.column(w.m.RetryCount).highest))
	}
	a.time(w.m.NextAttemptAt, w.roundUp(w.later("postrider_retry_after"), w.column(w.m.NextAttemptAt)))
	a.text(w.m.LastError, "postrider_error")
	a.time(w.m.UpdatedAt, w.now())
}

func least(value string, highest int64) string {
	if highest == 0 {
		return value
	}
	return "least(" + value + ", " + strconv.FormatInt(highest, 10) + ")"
}

func (w *terms) setPending() string {
	a := assignments{w: w}
	if w.m.Words.Dead != "" {
		a.set(w.m.Status, w.constant(w.m.Words.Pending[0], w.column(w.m.Status)))
	}
	a.set(w.m.RetryCount, "0")
	a.time(w.m.NextAttemptAt, w.later("-1")) // due also where the column rounds, lest later events of the key pass
	a.none(w.m.LastError)
	a.time(w.m.UpdatedAt, w.now())
	return a.String()
}

func (w *terms) setDiscarded() string {
	a := assignments{w: w}
	if word := cmp.Or(w.m.Words.Discarded, w.m.Words.Dead); word != "" {
		a.set(w.m.Status, w.constant(word, w.column(w.m.Status)))
	}
	a.time(w.m.UpdatedAt, w.now())
	return a.String()
}

// neededPrivileges are those on their table that a relay uses, as (table, privilege). They follow from the mapping alone: a user
// who lacks them may not see the table.
func (w *terms) neededPrivileges() string {
	var list []string
	for _, privilege := range w.needed() {
		list = append(list, "("+w.literal(w.table)+", '"+privilege+"')")
	}
	return strings.Join(list, ", ")
}

func (w *terms) needed() []string {
	list := []string{"SELECT"}
	if !w.deletes || w.m.canClaim() || w.setFailed()+w.setPending()+w.setDiscarded() != "" {
		list = append(list, "UPDATE")
	}
	if w.deletes {
		list = append(list, "DELETE")
	}
	return list
}

// tokens are the values of what the files leave open until their table is known.
func (w *terms) tokens() map[string]string {
	words, condition, order := w.walk()
	word := w.null(kindText)
	if w.word() != "" {
		word = w.quote(w.word())
	}
	created := w.column(w.m.CreatedAt)
	ascends := w.m.CreatedAt != "" && w.column(w.m.ID).ascends
	t := map[string]string{
		"rows": w.rows(""), "events": w.events(), "id": w.quote(w.m.ID), "id_type": w.column(w.m.ID).typ,
		// MySQL's files need these as well.
		"rows_walk": w.rows(w.walkHint()), "rows_by_id": w.rows(w.useIndex(w.t.uniqueIndexOf(w.m.ID))), "row_order": w.rowOrder(), "id_after": w.cast(":1", w.column(w.m.ID)),
		"id_given": w.cast("postrider_id", w.column(w.m.ID)), "id_failed": w.cast("f.event", w.column(w.m.ID)), "by_id": w.useIndex(w.t.uniqueIndexOf(w.m.ID)),
		"pending_words": words, "pending_walk": condition, "walk_order": order, "pending_p": w.isPending("p.word"),
		"row_is_pending": w.isPending(word) + " AND " + w.filter(), "state_of_row": w.state(word),
		"shard_of_row": w.shard(w.given(w.m.key()), w.shards), "key_of_row": w.given(w.m.key()), "aggregate_of_row": w.given(w.m.AggregateID),
		"type_of_row": w.given(w.m.AggregateType), "version_of_row": w.version(),
		"their_dead": w.theirDead(), "their_discarded": w.theirDiscarded(),
		"set_published": w.setPublished(), "set_failed": w.setFailed(), "set_pending": w.setPending(), "set_discarded": w.setDiscarded(),
		"can_clean": strconv.FormatBool(w.m.PublishedAt != "" || w.m.CreatedAt != ""), "ascends": strconv.FormatBool(ascends), "can_claim": strconv.FormatBool(w.m.canClaim()),
		"no_zone": strconv.FormatBool(created.kind == kindTime && !created.zoned),
	}
	maps.Copy(t, w.claimTokens())
	for _, state := range []postrider.State{postrider.StatePending, postrider.StateProcessing, postrider.StateDead, postrider.StateDiscarded} {
		t["state_"+strings.ToLower(string(state))] = w.has(state)
	}
	return t
}

// aside is the name of the query that does what the named one does where there is nothing to write into their table.
func (w *terms) aside(name string) string {
	set := map[string]string{"settle_failed": w.setFailed(), "redrive": w.setPending(), "discard": w.setDiscarded()}
	if value, ok := set[name]; ok && value == "" {
		return name + "_aside"
	}
	return name
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
