package config

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// object is a mapping whose keys are all known beforehand.
type object struct {
	value
	fields map[string]value
	order  []*yaml.Node // the keys as the file has them, without repetitions
	known  []string
}

// object lets read take the keys of the mapping; any key that read did not
// ask for is a mistake. An absent mapping is read as an empty one, and one
// of another kind not at all.
func (v value) object(read func(o *object)) {
	o := &object{value: v, fields: map[string]value{}}
	if v.present() {
		if !v.is(yaml.MappingNode) {
			return
		}
		v.pairs(func(key *yaml.Node, field value) {
			o.fields[key.Value] = field
			o.order = append(o.order, key)
		})
	}
	read(o)
	o.reportUnknown()
}

// field gives the value of a key and makes the key known.
func (o *object) field(key string) value {
	if !slices.Contains(o.known, key) {
		o.known = append(o.known, key)
	}
	return o.peek(key)
}

func (o *object) peek(key string) value {
	if f, ok := o.fields[key]; ok {
		return f
	}
	return value{r: o.r, path: join(o.path, key), at: o.at}
}

func (o *object) has(key string) bool { return o.peek(key).present() }

// firstOf gives the key to report a mistake between two keys at.
func (o *object) firstOf(key, other string) string {
	if o.has(key) {
		return key
	}
	return other
}

// problem records a mistake with a key's value, or at the mapping without it.
func (o *object) problem(key, message, hint string) { o.peek(key).problem(message, hint) }

// require records it if the key is missing.
func (o *object) require(key, hint string) {
	if !o.has(key) {
		o.problem(key, "is missing", hint)
	}
}

// exclude records it if both keys are there.
func (o *object) exclude(key, other, hint string) {
	if o.has(key) && o.has(other) {
		o.problem(other, "does not go together with "+key, hint)
	}
}

// drop takes a key out, so that it is not reported as unknown.
func (o *object) drop(key string) { delete(o.fields, key) }

// dropAll takes out every key, where it cannot be told which ones are right.
func (o *object) dropAll() { clear(o.fields) }

func (o *object) reportUnknown() {
	for _, key := range o.known {
		o.drop(key)
	}
	for _, key := range o.order {
		if _, unknown := o.fields[key.Value]; unknown {
			o.r.add(key.Line, key.Column, join(o.path, key.Value), "unknown key", suggest(key.Value, o.known, "known keys"))
		}
	}
}

// read sets dst to the parsed text of a key, and reports whether it did.
func read[T any](o *object, key string, dst *T, parse func(string) (T, *mistake)) bool {
	return readValue(o.field(key), dst, parse)
}
