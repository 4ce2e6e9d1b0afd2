package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/sqlstore"
)

// column is a key of outbox.columns and where its value goes.
type column struct {
	key string
	dst *string
}

// columnsOf lists the keys of outbox.columns: our names for what a table that is not ours may hold.
func columnsOf(m *sqlstore.Mapping) []column {
	return []column{
		{"id", &m.ID},
		{"order", &m.Order},
		{"event_id", &m.EventID},
		{"aggregate_type", &m.AggregateType},
		{"aggregate_id", &m.AggregateID},
		{"partition_key", &m.PartitionKey},
		{"event_type", &m.EventType},
		{"aggregate_version", &m.AggregateVersion},
		{"topic", &m.Topic},
		{"payload", &m.Payload},
		{"content_type", &m.ContentType},
		{"headers", &m.Headers},
		{"dedup_key", &m.DedupKey},
		{"status", &m.Status},
		{"published_at", &m.PublishedAt},
		{"retry_count", &m.RetryCount},
		{"next_attempt_at", &m.NextAttemptAt},
		{"last_error", &m.LastError},
		{"claim_token", &m.ClaimToken},
		{"processing_until", &m.ProcessingUntil},
		{"updated_at", &m.UpdatedAt},
		{"published_to", &m.PublishedTo},
		{"created_at", &m.CreatedAt},
	}
}

// fieldsOf lists the keys of outbox.columns for a collection of MongoDB, whose documents are identified by their _id.
func fieldsOf(m *mongo.Mapping) []column {
	return []column{
		{"order", &m.Order},
		{"event_id", &m.EventID},
		{"aggregate_type", &m.AggregateType},
		{"aggregate_id", &m.AggregateID},
		{"event_type", &m.EventType},
		{"topic", &m.Topic},
		{"payload", &m.Payload},
		{"content_type", &m.ContentType},
		{"headers", &m.Headers},
		{"dedup_key", &m.DedupKey},
		{"status", &m.Status},
		{"published_at", &m.PublishedAt},
		{"retry_count", &m.RetryCount},
		{"next_attempt_at", &m.NextAttemptAt},
		{"last_error", &m.LastError},
		{"claim_token", &m.ClaimToken},
		{"processing_until", &m.ProcessingUntil},
		{"updated_at", &m.UpdatedAt},
		{"published_to", &m.PublishedTo},
		{"created_at", &m.CreatedAt},
	}
}

// mapping is where what a file says about a table or a collection that is not ours goes.
type mapping struct {
	columns     []column
	required    map[string]string // keys of columns that cannot be missing, and why
	headerTerms *map[string]string
	status      *string // the column of the state
	words       *sqlstore.Words
	filter      *string
}

// readMapping says nothing about a table that postrider init creates.
func readMapping(o *object, outbox *Outbox) {
	if !o.has("preset") && !o.has("columns") {
		for _, key := range []string{"preset", "columns", "headers", "status", "filter", "time_zone", "side_schema"} {
			if o.field(key).present() {
				o.problem(key, "means nothing for a table that postrider init creates", "write preset or columns as well, or remove it")
			}
		}
		return
	}
	if outbox.Database == MongoDB {
		outbox.Documents = readCollection(o, outbox)
	} else {
		outbox.Mapping = readTable(o, outbox)
	}
}

func readTable(o *object, outbox *Outbox) *sqlstore.Mapping {
	m := &sqlstore.Mapping{}
	presets := sqlstore.Presets(dialectOf(outbox.Database))
	if i, found := readPreset(o, presets, func(p sqlstore.Preset) string { return p.Name }); found {
		*m = presets[i].Mapping
		outbox.setPreset(o, presets[i].Name, presets[i].Table)
	}
	mapping{
		columns: columnsOf(m),
		required: map[string]string{
			"id":         "name the column that identifies a row",
			"event_type": "name its column, or write a text for all rows: \"'OrderPlaced'\"",
			"payload":    "name its column",
		},
		headerTerms: &m.HeaderTerms, status: &m.Status, words: &m.Words, filter: &m.Filter,
	}.read(o)
	str(o, "time_zone", &m.TimeZone)
	strAs(o, "side_schema", &m.SideSchema, parseSchema)
	return m
}

func readCollection(o *object, outbox *Outbox) *mongo.Mapping {
	m := &mongo.Mapping{}
	presets := mongo.Presets()
	if i, found := readPreset(o, presets, func(p mongo.Preset) string { return p.Name }); found {
		*m = presets[i].Mapping
		outbox.setPreset(o, presets[i].Name, presets[i].Collection)
	}
	mapping{
		columns: fieldsOf(m),
		required: map[string]string{
			"event_type": "name its field, or write a text for all documents: \"'OrderPlaced'\"",
			"payload":    "name its field",
			"status":     "name the field of the state",
		},
		headerTerms: &m.HeaderTerms, status: &m.Status, words: (*sqlstore.Words)(&m.Words), filter: &m.Filter,
	}.read(o)
	for _, key := range []string{"time_zone", "side_schema"} {
		if o.field(key).present() {
			o.problem(key, "means nothing with MongoDB, which has neither dates without a zone nor schemas", "remove it")
		}
	}
	return m
}

// readPreset finds the preset that the file names.
func readPreset[P any](o *object, presets []P, nameOf func(P) string) (i int, found bool) {
	var names []string
	for _, p := range presets {
		names = append(names, nameOf(p))
	}
	found = read(o, "preset", &i, func(text string) (int, *mistake) {
		if i := slices.Index(names, text); i >= 0 {
			return i, nil
		}
		return 0, &mistake{"is no preset", suggest(text, names, "presets")}
	})
	return i, found
}

func (outbox *Outbox) setPreset(o *object, name, table string) {
	outbox.Preset = name
	if !o.has("table") {
		outbox.Table = table
	}
}

// dialectOf gives the words of a database; of one that is not known, those of PostgreSQL.
func dialectOf(database Database) sqlstore.Dialect {
	switch database {
	case MySQL:
		return sqlstore.MySQL
	case SQLite:
		return sqlstore.SQLite
	default:
		return sqlstore.Postgres
	}
}

// read takes what the file changes of a preset, or says without one. A preset that is not known counts as one, so that
// what it may have set is not missed.
func (m mapping) read(o *object) {
	hasPreset := o.has("preset")
	m.readColumns(o.field("columns"), hasPreset)
	readHeaderTerms(o.field("headers"), m.headerTerms)
	m.readWords(o, hasPreset)
	str(o, "filter", m.filter)
}

func (m mapping) readColumns(v value, hasPreset bool) {
	v.object(func(o *object) {
		for _, c := range m.columns {
			readColumn(o, c, hasPreset)
		}
		if hasPreset || !o.present() {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(m.required)) {
			o.require(key, m.required[key])
		}
		if !o.has("partition_key") {
			o.require("aggregate_id", "name the column of the key")
		}
	})
}

// readColumn takes any text; an empty one takes away what the preset has.
func readColumn(o *object, c column, hasPreset bool) {
	text, ok := o.field(c.key).text()
	switch {
	case !ok:
	case strings.TrimSpace(text) == "" && !hasPreset:
		o.problem(c.key, "is empty", "name the column of their table, or remove the line")
	default:
		*c.dst = strings.TrimSpace(text)
	}
}

func readHeaderTerms(v value, terms *map[string]string) {
	if !v.is(yaml.MappingNode) {
		return
	}
	changed := maps.Clone(*terms)
	if changed == nil {
		changed = make(map[string]string)
	}
	*terms = changed
	v.pairs(func(key *yaml.Node, field value) {
		var term string
		if readString(field, &term, anyString) {
			changed[key.Value] = term
		}
	})
}

func (m mapping) readWords(o *object, hasPreset bool) {
	words := m.words
	status := o.field("status")
	if status.present() && *m.status == "" && !hasPreset {
		o.problem("status", "means nothing without a column of the state", "name it in columns.status, or remove this")
	}
	if !status.present() && *m.status != "" && !hasPreset {
		o.problem("status", "is missing", "say which words columns.status holds: status: {pending: PENDING, published: PUBLISHED}")
	}
	status.object(func(o *object) {
		strs(o, "pending", &words.Pending)
		str(o, "processing", &words.Processing)
		str(o, "published", &words.Published)
		str(o, "dead", &words.Dead)
		str(o, "discarded", &words.Discarded)
		if o.present() && !hasPreset {
			o.require("pending", "name the word of a row that is to be published, or a list of such words")
		}
	})
}

var schemaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func parseSchema(text string) (string, *mistake) {
	if !schemaName.MatchString(text) {
		return "", &mistake{"is no name of a schema", "write letters, digits and _"}
	}
	return text, nil
}
