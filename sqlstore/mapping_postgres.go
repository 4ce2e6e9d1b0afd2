package sqlstore

import (
	"fmt"
	"strconv"
	"strings"
)

// postgresPhrases is PostgreSQL; json is the quoted name of the function that reads a member of JSON text.
type postgresPhrases struct{ json string }

func (postgresPhrases) quote(column string) string { return quoteName(column) }

func (postgresPhrases) literal(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

func (p postgresPhrases) constant(text string, _ column) string { return p.literal(text) }

func (postgresPhrases) text(value string) string { return "(" + value + ")::text" }

func (p postgresPhrases) value(c column) string { return p.text(p.quote(c.name)) }

func (postgresPhrases) cast(value string, c column) string { return "(" + value + ")::" + c.typ }

func (postgresPhrases) null(kind string) string {
	return "NULL::" + map[string]string{kindText: "text", kindTime: "timestamptz", kindInteger: "bigint"}[kind]
}

// member reads a member of a document. Documents that are stored as text can hold what an operator refuses, also in
// members that nobody asked for; the function gives NULL for those.
func (p postgresPhrases) member(c column, path []string, json bool) string {
	var names []string
	for _, name := range path {
		names = append(names, p.literal(name))
	}
	list := "ARRAY[" + strings.Join(names, ", ") + "]"
	switch {
	case c.kind != kindJSONB:
		return p.json + "(" + p.quote(c.name) + "::text, " + list + ", " + strconv.FormatBool(json) + ")"
	case json:
		return "(" + p.quote(c.name) + " #> " + list + ")::text"
	default:
		return "(" + p.quote(c.name) + " #>> " + list + ")"
	}
}

func (p postgresPhrases) object(members map[string]string) string {
	var list []string
	for _, name := range sortedKeys(members) {
		list = append(list, p.literal(name)+", "+members[name])
	}
	return "json_build_object(" + strings.Join(list, ", ") + ")"
}

func (postgresPhrases) list(a, b string) string { return "json_build_array(" + a + ", " + b + ")" }

func (postgresPhrases) shard(key string, shards int) string {
	return fmt.Sprintf("((hashtextextended(%s, 0) & 9223372036854775807) %% %d)::smallint", key, shards)
}

func (p postgresPhrases) moment(c column, zone string) string {
	name := p.quote(c.name)
	switch {
	case c.kind == kindInteger:
		return "to_timestamp(CASE WHEN " + name + " > 100000000000 THEN " + name + " / 1000.0 ELSE " + name + " END)"
	case c.zoned:
		return name + "::timestamptz"
	default:
		return "(" + name + " AT TIME ZONE " + p.zone(zone) + ")"
	}
}

func (p postgresPhrases) store(instant string, c column, zone string) string {
	if c.zoned {
		return instant
	}
	return "(" + instant + " AT TIME ZONE " + p.zone(zone) + ")"
}

func (postgresPhrases) roundUp(instant string, c column) string {
	if c.fractions > 0 {
		return instant
	}
	return "date_trunc('second', " + instant + " + interval '999999 microseconds')"
}

// zone writes an offset as an interval: as text, its sign would mean the opposite.
func (p postgresPhrases) zone(zone string) string {
	if strings.Contains(zone, ":") {
		return "interval " + p.literal(zone)
	}
	return p.literal(zone)
}

func (postgresPhrases) now() string { return "now()" }

func (postgresPhrases) later(seconds string) string {
	return "(now() + " + seconds + " * interval '1 second')"
}

func (postgresPhrases) cut(text string, c column) string {
	if c.length == 0 {
		return text
	}
	return "left(" + text + ", " + strconv.Itoa(c.length) + ")"
}

func (postgresPhrases) sideKey(key string) string { return key }

func (postgresPhrases) useIndex(string) string { return "" }

// createIndex keeps writers out only where the database cannot do without.
func (postgresPhrases) createIndex(_ string, partitioned bool) string {
	if partitioned {
		return "INDEX"
	}
	return "INDEX CONCURRENTLY"
}
