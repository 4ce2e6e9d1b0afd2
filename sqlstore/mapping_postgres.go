package sqlstore

import (
	"fmt"
	"strconv"
	"strings"
)

// postgresPhrases is PostgreSQL; json is the quoted name of the function that reads text as JSON, if it is any.
type postgresPhrases struct{ json string }

func (postgresPhrases) quote(column string) string { return quoteName(column) }

func (postgresPhrases) literal(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

func (postgresPhrases) text(value string) string { return "(" + value + ")::text" }

func (postgresPhrases) cast(value, typ string) string {
	if typ == kindInteger {
		typ = "bigint"
	}
	return "(" + value + ")::" + typ
}

func (postgresPhrases) null(kind string) string {
	return "NULL::" + map[string]string{kindText: "text", kindTime: "timestamptz", kindInteger: "bigint"}[kind]
}

func (p postgresPhrases) member(c column, path []string, json bool) string {
	value := p.quote(c.name)
	if c.kind == kindText {
		value = p.json + "(" + value + "::text)"
	}
	var names []string
	for _, name := range path {
		names = append(names, p.literal(name))
	}
	operator := "#>>"
	if json {
		operator = "#>"
	}
	return "(" + value + " " + operator + " ARRAY[" + strings.Join(names, ", ") + "])::text"
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

func (postgresPhrases) cut(text string, length int) string {
	if length == 0 {
		return text
	}
	return "left(" + text + ", " + strconv.Itoa(length) + ")"
}

func (postgresPhrases) least(value string, highest int64) string {
	if highest == 0 {
		return value
	}
	return "least(" + value + ", " + strconv.FormatInt(highest, 10) + ")"
}

func (postgresPhrases) createIndex() string { return "INDEX CONCURRENTLY" }
