package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// reader goes through one file and collects the mistakes in it.
type reader struct {
	file     string
	lookup   func(string) (string, bool)
	problems []Problem
}

func (r *reader) add(line, column int, path, message, hint string) {
	r.problems = append(r.problems, Problem{
		File: r.file, Line: line, Column: column, Path: path, Message: message, Hint: hint,
	})
}

// isClean runs read and reports whether it recorded no mistake.
func (r *reader) isClean(read func()) bool {
	before := len(r.problems)
	read()
	return len(r.problems) == before
}

// mistake is what is wrong with a text, before it is known where it stands.
// In the hint {} stands for the text as the file has it.
type mistake struct{ message, hint string }

// value is one place of the document.
type value struct {
	r    *reader
	path string
	node *yaml.Node // with aliases resolved; nil where the file says nothing
	at   *yaml.Node // where mistakes are reported
}

func newValue(r *reader, path string, node *yaml.Node) value {
	at := node
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return value{r: r, path: path, node: node, at: at}
}

func (v value) present() bool { return v.node != nil }

func (v value) problem(message, hint string) {
	v.r.add(v.at.Line, v.at.Column, v.path, message, hint)
}

// is reports whether v is there and of the kind; if it is there and of
// another kind, it records that.
func (v value) is(kind yaml.Kind) bool {
	switch {
	case !v.present():
		return false
	case isNull(v.node):
		v.problem("is empty", "give it a value, or remove the line")
		return false
	case v.node.Kind == kind:
		return true
	}
	hint := map[yaml.Kind]string{
		yaml.ScalarNode:   "write it on the line of its key",
		yaml.SequenceNode: "write [a, b], or one line each that begins with a dash",
		yaml.MappingNode:  "write {key: value}, or one indented line for each key",
	}[kind]
	if kind == yaml.ScalarNode && v.node.Style&yaml.FlowStyle != 0 {
		hint = "put a value that begins with { or [ in quotes"
	}
	v.problem(fmt.Sprintf("must be %s, not %s", kindName(kind), kindName(v.node.Kind)), hint)
	return false
}

func kindName(k yaml.Kind) string {
	switch k {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		return "a single value"
	}
}

// child gives the value of a key of a mapping that was read already.
func (v value) child(key string) value {
	for i := 0; v.present() && i+1 < len(v.node.Content); i += 2 {
		if v.node.Content[i].Value == key {
			return newValue(v.r, join(v.path, key), v.node.Content[i+1])
		}
	}
	return value{r: v.r, path: join(v.path, key), at: v.at}
}

// pairs calls each for every key and its value in the order of the file. A
// key that stands there again is recorded, and left out.
func (v value) pairs(each func(key *yaml.Node, field value)) {
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key, content := v.node.Content[i], v.node.Content[i+1]
		path := join(v.path, key.Value)
		switch earlier := first[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			v.r.add(key.Line, key.Column, v.path, "a key must be plain text", "write key: value")
		case key.Tag == "!!merge":
			v.r.add(key.Line, key.Column, path, "merge keys are not read", "write the keys out")
		case earlier != nil:
			v.r.add(key.Line, key.Column, path, "is there twice", fmt.Sprintf("the first one is in line %d; keep one", earlier.Line))
		default:
			first[key.Value] = key
			each(key, newValue(v.r, path, content))
		}
	}
}

// items calls each for every element of a list, and reports whether v is one.
func (v value) items(each func(item value)) bool {
	if !v.is(yaml.SequenceNode) {
		return false
	}
	for i, content := range v.node.Content {
		each(newValue(v.r, fmt.Sprintf("%s[%d]", v.path, i), content))
	}
	return true
}

// text gives the expanded text of a single value. It is not ok if v is absent
// or a mistake was recorded.
func (v value) text() (text string, ok bool) {
	if !v.is(yaml.ScalarNode) {
		return "", false
	}
	text, mistakes := expand(v.node.Value, v.r.lookup)
	for _, m := range mistakes {
		v.problem(m.message, m.hint)
	}
	return text, len(mistakes) == 0
}

// readValue sets dst to the parsed text of v, and reports whether it did.
func readValue[T any](v value, dst *T, parse func(string) (T, *mistake)) bool {
	text, ok := v.text()
	if !ok {
		return false
	}
	if strings.TrimSpace(text) == "" {
		v.problem("is empty", "give it a value, or remove the line")
		return false
	}
	parsed, wrong := parse(text)
	if wrong != nil {
		// The text as the file has it: what a variable holds may be secret.
		asWritten := v.node.Value
		v.problem(fmt.Sprintf("%q %s", asWritten, wrong.message), strings.ReplaceAll(wrong.hint, "{}", asWritten))
		return false
	}
	*dst = parsed
	return true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
