package sqlstore

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// mysqlPhrases is MySQL and MariaDB. Instants are datetime(6) in UTC. Texts compare by their exact characters, whatever the
// collations of their columns are; words and ids, which indexes must lead to, compare as their columns do.
type mysqlPhrases struct{}

func (mysqlPhrases) quote(column string) string { return "`" + column + "`" }

// literal writes what has a meaning in literals, statements or their parameters by its bytes.
func (mysqlPhrases) literal(text string) string {
	if harmless.MatchString(text) {
		return "'" + text + "'"
	}
	return "_utf8mb4 X'" + hex.EncodeToString([]byte(text)) + "'"
}

var harmless = regexp.MustCompile(`^[A-Za-z0-9 _.+-]*$`)

func (p mysqlPhrases) constant(text string, c column) string {
	switch {
	case c.kind == kindInteger && integer.MatchString(text):
		return text
	case c.kind == kindUUID:
		return p.cast(p.literal(text), c)
	default:
		return p.literal(text)
	}
}

func (mysqlPhrases) text(value string) string {
	return "CAST(" + value + " AS CHAR CHARACTER SET utf8mb4) " + mysqlExact
}

func (p mysqlPhrases) value(c column) string {
	name := p.quote(c.name)
	switch {
	case c.typ == "binary(16)":
		name = "insert(insert(insert(insert(lower(hex(" + name + ")), 21, 0, '-'), 17, 0, '-'), 13, 0, '-'), 9, 0, '-')"
	case strings.HasPrefix(c.typ, "bit"):
		name = "CAST(" + name + " AS UNSIGNED)"
	}
	return p.text(name)
}

func (mysqlPhrases) cast(value string, c column) string {
	switch {
	case c.typ == "binary(16)":
		return "unhex(replace(" + value + ", '-', ''))"
	case c.kind == kindUUID:
		return "CAST(" + value + " AS UUID)"
	case strings.HasPrefix(c.typ, "decimal"):
		return "CAST(" + value + " AS DECIMAL(65))"
	case c.kind == kindInteger && (strings.Contains(c.typ, "unsigned") || strings.HasPrefix(c.typ, "bit")):
		return "CAST(" + value + " AS UNSIGNED)"
	case c.kind == kindInteger:
		return "CAST(" + value + " AS SIGNED)"
	case c.charset != "":
		return "CONVERT(" + value + " USING " + c.charset + ") COLLATE " + c.collation
	default:
		return value
	}
}

func (mysqlPhrases) null(string) string { return "NULL" }

func (p mysqlPhrases) member(c column, path []string, json bool) string {
	place := "$"
	for _, name := range path {
		place += `."` + name + `"`
	}
	value := "json_extract(" + p.quote(c.name) + ", " + p.literal(place) + ")"
	there := "json_valid(" + p.quote(c.name) + ")"
	if !json {
		there += " AND json_type(" + value + ") <> 'NULL'"
		value = "json_unquote(" + value + ")"
	}
	return p.text("CASE WHEN " + there + " THEN " + value + " END")
}

func (p mysqlPhrases) object(members map[string]string) string {
	var list []string
	for _, name := range sortedKeys(members) {
		list = append(list, p.literal(name)+", "+members[name])
	}
	return "json_object(" + strings.Join(list, ", ") + ")"
}

func (mysqlPhrases) list(a, b string) string { return "json_array(" + a + ", " + b + ")" }

func (mysqlPhrases) shard(key string, shards int) string {
	return fmt.Sprintf("crc32(%s) %% %d", key, shards)
}

const mysqlEpoch = "CAST('1970-01-01' AS DATETIME(6))"

// moment reads a TIMESTAMP as seconds since 1970, which no session's time zone touches.
func (p mysqlPhrases) moment(c column, zone string) string {
	name := p.quote(c.name)
	switch {
	case c.kind == kindInteger:
		return "(" + mysqlEpoch + " + INTERVAL CASE WHEN " + name + " > 100000000000 THEN " + name + " * 1000 ELSE " + name + " * 1000000 END MICROSECOND)"
	case c.zoned:
		return "(" + mysqlEpoch + " + INTERVAL round(unix_timestamp(" + name + ") * 1000000) MICROSECOND)"
	case zone == "UTC":
		return name
	default:
		return "convert_tz(" + name + ", " + p.literal(zone) + ", '+00:00')"
	}
}

// store cuts what the column cannot hold: the servers round it, or not, by their settings.
func (p mysqlPhrases) store(instant string, c column, zone string) string {
	switch {
	case c.zoned:
		instant = "from_unixtime(timestampdiff(MICROSECOND, '1970-01-01', " + instant + ") / 1000000)"
	case zone != "UTC":
		instant = "convert_tz(" + instant + ", '+00:00', " + p.literal(zone) + ")"
	}
	const seconds = len("2000-01-01 00:00:00")
	switch c.fractions {
	case 6:
		return instant
	case 0:
		return fmt.Sprintf("left(date_format(%s, '%%Y-%%m-%%d %%T'), %d)", instant, seconds)
	default:
		return fmt.Sprintf("left(date_format(%s, '%%Y-%%m-%%d %%T.%%f'), %d)", instant, seconds+1+c.fractions)
	}
}

func (mysqlPhrases) roundUp(instant string, c column) string {
	unit := 1
	for range 6 - c.fractions {
		unit *= 10
	}
	return fmt.Sprintf("(%s + INTERVAL %d MICROSECOND)", instant, unit-1)
}

func (mysqlPhrases) now() string { return "utc_timestamp(6)" }

func (mysqlPhrases) later(seconds string) string {
	return "(utc_timestamp(6) + INTERVAL round(" + seconds + " * 1000000) MICROSECOND)"
}

// cut puts ? for characters that the column's character set may not have.
func (mysqlPhrases) cut(text string, c column) string {
	if c.charset != "utf8mb4" {
		text = "regexp_replace(" + text + ", '[^ -~]', '?')"
	}
	if c.length == 0 {
		return text
	}
	return "left(" + text + ", " + strconv.Itoa(c.length) + ")"
}

func (mysqlPhrases) sideKey(key string) string { return "left(" + key + ", 767)" }

func (p mysqlPhrases) useIndex(name string) string { return " FORCE INDEX (" + p.quote(name) + ")" }

func (mysqlPhrases) createIndex(name string, _ bool) string { return "INDEX " + name }
