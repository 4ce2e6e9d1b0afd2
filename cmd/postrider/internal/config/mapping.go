package config

import (
	"maps"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

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

// readMapping gives nil for a table that postrider init creates.
func readMapping(o *object, outbox *Outbox) *sqlstore.Mapping {
	if outbox.Database == MongoDB {
		for _, key := range []string{"preset", "columns"} {
			o.refuse(key, "with MongoDB the collection must be one that postrider init creates")
		}
	}
	mapping, hasPreset := readPreset(o, outbox)
	columns := o.field("columns")
	if !hasPreset && !columns.present() {
		for _, key := range []string{"headers", "status", "filter", "time_zone", "side_schema"} {
			if o.field(key).present() {
				o.problem(key, "means nothing for a table that postrider init creates", "write preset or columns as well, or remove it")
			}
		}
		return nil
	}
	readColumns(columns, &mapping, hasPreset)
	readHeaderTerms(o.field("headers"), &mapping)
	readWords(o, &mapping, hasPreset)
	str(o, "filter", &mapping.Filter)
	str(o, "time_zone", &mapping.TimeZone)
	strAs(o, "side_schema", &mapping.SideSchema, parseSchema)
	return &mapping
}

// readPreset gives the mapping of the preset that the file names. One that is not known counts as well, so that what it
// may have set is not missed.
func readPreset(o *object, outbox *Outbox) (mapping sqlstore.Mapping, hasPreset bool) {
	strAs(o, "preset", &outbox.Preset, func(text string) (string, *mistake) {
		preset, known := sqlstore.FindPreset(dialectOf(outbox.Database), text)
		if !known {
			return "", &mistake{"is no preset", suggest(text, presetNames(outbox.Database), "presets")}
		}
		mapping = preset.Mapping
		if !o.has("table") {
			outbox.Table = preset.Table
		}
		return text, nil
	})
	return mapping, o.has("preset")
}

func presetNames(database Database) []string {
	var names []string
	for _, p := range sqlstore.Presets(dialectOf(database)) {
		names = append(names, p.Name)
	}
	return names
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

func readColumns(v value, mapping *sqlstore.Mapping, hasPreset bool) {
	v.object(func(o *object) {
		for _, c := range columnsOf(mapping) {
			readColumn(o, c, hasPreset)
		}
		if hasPreset || !o.present() {
			return
		}
		o.require("id", "name the column that identifies a row")
		o.require("event_type", "name its column, or write a text for all rows: \"'OrderPlaced'\"")
		o.require("payload", "name its column")
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

func readHeaderTerms(v value, mapping *sqlstore.Mapping) {
	if !v.is(yaml.MappingNode) {
		return
	}
	mapping.HeaderTerms = maps.Clone(mapping.HeaderTerms)
	v.pairs(func(key *yaml.Node, field value) {
		var term string
		if !readString(field, &term, anyString) {
			return
		}
		if mapping.HeaderTerms == nil {
			mapping.HeaderTerms = make(map[string]string)
		}
		mapping.HeaderTerms[key.Value] = term
	})
}

func readWords(o *object, mapping *sqlstore.Mapping, hasPreset bool) {
	words := &mapping.Words
	status := o.field("status")
	if status.present() && mapping.Status == "" && !hasPreset {
		o.problem("status", "means nothing without a column of the state", "name it in columns.status, or remove this")
	}
	if !status.present() && mapping.Status != "" && !hasPreset {
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
