package mongo

import (
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestParseTerm(t *testing.T) {
	text := func(s string) *string { return &s }
	for in, want := range map[string][]part{
		"a":              {{path: "a"}},
		" meta.id ":      {{path: "meta.id"}},
		"'it, (is)'":     {{constant: text("it, (is)")}},
		"a.b, c ,'none'": {{path: "a.b"}, {path: "c"}, {constant: text("none")}},
	} {
		if got, err := parseTerm(in); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"", ",", "a,", "a..b", "$a", "a.$b", "'a", "'a'b", "a'b"} {
		if got, err := parseTerm(in); err == nil {
			t.Errorf("%q was taken for %+v", in, got)
		}
	}
}

func complete() Mapping {
	return Mapping{AggregateID: "who", EventType: "what", Payload: "body", Status: "status",
		Words: Words{Pending: []string{"NEW"}, Published: "SENT", Dead: "FAILED"}}
}

func TestOpenRefusesMappingsThatCannotWork(t *testing.T) {
	for want, change := range map[string]func(*Mapping){
		"aggregate_id is missing":                  func(m *Mapping) { m.AggregateID = "" },
		"event_type is missing":                    func(m *Mapping) { m.EventType = "" },
		"payload is missing":                       func(m *Mapping) { m.Payload = "" },
		"status is missing":                        func(m *Mapping) { m.Status = "" },
		`payload is "a, b"; it must be the name`:   func(m *Mapping) { m.Payload = "a, b" },
		`topic: "'a"`:                              func(m *Mapping) { m.Topic = "'a" },
		`the header X: "$b"`:                       func(m *Mapping) { m.HeaderTerms = map[string]string{"X": "$b"} },
		"status.pending is missing":                func(m *Mapping) { m.Words.Pending = nil },
		"status.published is missing":              func(m *Mapping) { m.Words.Published = "" },
		"status.dead is missing":                   func(m *Mapping) { m.Words.Dead = "" },
		`the word "SENT" stands for two states`:    func(m *Mapping) { m.Words.Dead = "SENT" },
		"claim_token and processing_until belong":  func(m *Mapping) { m.ClaimToken = "lock" },
		"filter is no condition in extended JSON":  func(m *Mapping) { m.Filter = "{tenant" },
		`the word "NEW" stands for two states`:     func(m *Mapping) { m.Words.Pending = []string{"NEW", "NEW"} },
		`the word "FAILED" stands for two states`:  func(m *Mapping) { m.Words.Processing = "FAILED" },
		`order is "'x'"; it must be the name of a`: func(m *Mapping) { m.Order = "'x'" },
	} {
		m := complete()
		change(&m)
		if _, err := Open(collection(t, "tasks"), StoreConfig{Mapping: &m}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Open(collection(t, "tasks"), StoreConfig{Mapping: &Mapping{}}); err == nil || strings.Count(err.Error(), "mapping: ") != 7 {
		t.Errorf("%v, want all seven mistakes", err)
	}
}

func TestPresetsAreCompleteAndCopies(t *testing.T) {
	for _, p := range Presets() {
		if _, err := Open(collection(t, p.Collection), StoreConfig{Mapping: &p.Mapping}); err != nil || p.About == "" {
			t.Errorf("preset %s (%s): %v", p.Name, p.About, err)
		}
		p.Mapping.Words.Pending[0] = "CHANGED"
		if again, found := FindPreset(p.Name); !found || again.Mapping.Words.Pending[0] == "CHANGED" {
			t.Errorf("the preset %s was changed, or is not found", p.Name)
		}
	}
	if _, found := FindPreset("none"); found {
		t.Error("an unknown preset was found")
	}
}

func TestOpenLeavesTheMappingAlone(t *testing.T) {
	m := complete()
	s, err := Open(collection(t, "tasks"), StoreConfig{Mapping: &m})
	if err != nil || !reflect.DeepEqual(m, complete()) {
		t.Fatalf("%v: the mapping became %+v", err, m)
	}
	if got := s.theirs.Mapping; got.Order != "_id" || got.EventID != "_id" || got.AggregateType != "'tasks'" || got.Words.Discarded != "FAILED" {
		t.Errorf("completed to %+v", got)
	}
}

func TestIDsHaveATextAndBack(t *testing.T) {
	for _, id := range []any{bson.NewObjectID(), "text", `"quoted" }`, "0123456789abcdef01234567", int32(7), int64(1) << 60, 1.5, true, bson.D{{Key: "a", Value: "b"}}} {
		back, err := idValue(idText(id))
		if err != nil || !reflect.DeepEqual(back, id) {
			t.Errorf("%v became %s and then %v, %v", id, idText(id), back, err)
		}
	}
	for _, text := range []string{"", "x' OR '1'='1", "\x00", `1}, {"": 2`, "0192f0c1-9a3b-7c4d-8e5f-0123456789ab"} {
		if id, err := idValue(text); err == nil {
			t.Errorf("%q became %v", text, id)
		}
	}
}
