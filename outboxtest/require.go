package outboxtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/postrider/postrider"
)

// Want says what an event must be. A field with its zero value is not looked at.
type Want struct {
	Type             string
	AggregateType    string
	AggregateID      string
	AggregateVersion int64
	Topic            string
	DedupKey         string
	Headers          map[string]string // these, whatever others there are

	JSON     string // the payload as a JSON value: spaces, and the order of names, do not matter
	Includes string // JSON: the payload has at least its names, with these values; arrays are compared as a whole
	Payload  []byte // byte for byte
}

// Require fails the test, and ends it, unless got is exactly the events that are wanted, in this order. It says which event
// differs in what, which one is missing and which one is too many. Without wants, nothing may have been added.
func Require(t testing.TB, got []postrider.Event, want ...Want) {
	t.Helper()
	if text := Diff(got, want...); text != "" {
		t.Fatalf("%s\n%s", amount(len(got), len(want)), text)
	}
}

func amount(got, want int) string {
	if want == 0 {
		return fmt.Sprintf("%d events were added, want none:", got)
	}
	return fmt.Sprintf("%d events were added, want %d:", got, want)
}

// Diff returns what Require would say, a line for each difference, or "" where there is none.
func Diff(got []postrider.Event, want ...Want) string {
	var lines []string
	for len(got) > 0 && len(want) > 0 {
		difference := want[0].differences(got[0])
		switch {
		case difference == nil:
		case want[0].isIn(got[1:]): // the first of got is too many
			lines = append(lines, "  not wanted: "+describe(got[0]))
			got = got[1:]
			continue
		case slices.ContainsFunc(want[1:], func(w Want) bool { return w.differences(got[0]) == nil }):
			lines = append(lines, "  missing: "+want[0].String())
			want = want[1:]
			continue
		default:
			lines = append(lines, "  "+describe(got[0])+":")
			for _, d := range difference {
				lines = append(lines, "    "+d)
			}
		}
		got, want = got[1:], want[1:]
	}
	for _, e := range got {
		lines = append(lines, "  not wanted: "+describe(e))
	}
	for _, w := range want {
		lines = append(lines, "  missing: "+w.String())
	}
	return strings.Join(lines, "\n")
}

func (w Want) isIn(events []postrider.Event) bool {
	return slices.ContainsFunc(events, func(e postrider.Event) bool { return w.differences(e) == nil })
}

func describe(e postrider.Event) string {
	return fmt.Sprintf("%s of %s %s, payload %.200s", e.Type, e.AggregateType, e.AggregateID, printable(e.Payload))
}

func printable(payload []byte) string {
	if json.Valid(payload) {
		return string(payload)
	}
	return strconv.Quote(string(payload))
}

// String returns the fields that are looked at.
func (w Want) String() string {
	var parts []string
	for _, f := range w.fields(postrider.Event{}) {
		if f.want != "" {
			parts = append(parts, fmt.Sprintf("%s %s", f.name, f.want))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Headers)) {
		parts = append(parts, fmt.Sprintf("header %s %s", name, w.Headers[name]))
	}
	for _, p := range []struct{ name, want string }{{"payload", w.JSON}, {"payload with", w.Includes}, {"payload", string(w.Payload)}} {
		if p.want != "" {
			parts = append(parts, fmt.Sprintf("%s %.200s", p.name, printable([]byte(p.want))))
		}
	}
	if parts == nil {
		return "any event"
	}
	return strings.Join(parts, ", ")
}

type field struct{ name, want, got string }

func (w Want) fields(e postrider.Event) []field {
	return []field{
		{"type", w.Type, e.Type},
		{"aggregate type", w.AggregateType, e.AggregateType},
		{"aggregate id", w.AggregateID, e.AggregateID},
		{"aggregate version", number(w.AggregateVersion), number(e.AggregateVersion)},
		{"topic", w.Topic, e.Topic},
		{"dedup key", w.DedupKey, e.DedupKey},
	}
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func (w Want) differences(e postrider.Event) (lines []string) {
	for _, f := range w.fields(e) {
		if f.want != "" && f.got != f.want {
			lines = append(lines, fmt.Sprintf("%s is %q, want %q", f.name, f.got, f.want))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Headers)) {
		if got, ok := e.Headers[name]; !ok {
			lines = append(lines, fmt.Sprintf("header %s is missing, want %q", name, w.Headers[name]))
		} else if got != w.Headers[name] {
			lines = append(lines, fmt.Sprintf("header %s is %q, want %q", name, got, w.Headers[name]))
		}
	}
	if w.Payload != nil && !bytes.Equal(w.Payload, e.Payload) {
		lines = append(lines, fmt.Sprintf("payload is %.500q, want %.500q", e.Payload, w.Payload))
	}
	if w.JSON != "" {
		lines = append(lines, compareJSON(e.Payload, w.JSON, false)...)
	}
	if w.Includes != "" {
		lines = append(lines, compareJSON(e.Payload, w.Includes, true)...)
	}
	return lines
}

// compareJSON names places by their JSON Pointers.
func compareJSON(payload []byte, text string, partly bool) []string {
	want, err := decode([]byte(text))
	if err != nil {
		return []string{fmt.Sprintf("what is wanted is not valid JSON: %v: %s", err, text)}
	}
	got, err := decode(payload)
	if err != nil {
		return []string{fmt.Sprintf("payload is not valid JSON: %v: %.500q", err, payload)}
	}
	return compare("payload", got, want, partly)
}

func decode(text []byte) (value any, err error) {
	if !json.Valid(text) { // Decode would stop behind the first value
		return nil, json.Unmarshal(text, &value)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // 2^53 and above, too
	err = decoder.Decode(&value)
	return value, err
}

func compare(place string, got, want any, partly bool) (lines []string) {
	wanted, areObjects := want.(map[string]any)
	found, ok := got.(map[string]any)
	if !areObjects || !ok {
		if !reflect.DeepEqual(got, want) {
			lines = append(lines, fmt.Sprintf("%s is %s, want %s", place, show(got), show(want)))
		}
		return lines
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if value, ok := found[name]; ok {
			lines = append(lines, compare(place+"/"+name, value, wanted[name], partly)...)
		} else {
			lines = append(lines, fmt.Sprintf("%s/%s is missing, want %s", place, name, show(wanted[name])))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, ok := wanted[name]; !ok && !partly {
			lines = append(lines, fmt.Sprintf("%s/%s is %s, want none", place, name, show(found[name])))
		}
	}
	return lines
}

func show(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // it was decoded from JSON
	}
	return strings.TrimSpace(text.String())
}
