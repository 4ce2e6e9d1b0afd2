package postriderjsonschema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/contract"
	postriderjsonschema "github.com/postrider/postrider/jsonschema"
)

const placed = `{
  "type": "object",
  "required": ["order", "amount"],
  "properties": {
    "order": {"type": "string", "pattern": "^o-[0-9]+$"},
    "amount": {"type": "integer", "minimum": 1, "exclusiveMaximum": 1000.5},
    "step": {"multipleOf": 0.25},
    "mail": {"type": "string", "format": "email"},
    "currency": {"enum": ["EUR", "USD"]},
    "lines": {"type": "array", "maxItems": 2, "items": {"$ref": "parts/line.json"}},
    "any": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "a/b~": {"type": "string"}
  },
  "additionalProperties": false
}`

const line = `{"type": "object", "required": ["sku"], "properties": {"sku": {"$ref": "#/$defs/sku"}}, "$defs": {"sku": {"minLength": 2}}}`

func folder(files ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		fsys[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return fsys
}

func compile(t *testing.T, fsys fstest.MapFS) *contract.Contract {
	t.Helper()
	files, err := postriderjsonschema.Files(fsys)
	if err != nil {
		t.Fatal(err)
	}
	checks, err := postriderjsonschema.Compile(fsys, files)
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.New(contract.Config{Checks: checks})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestProblemsNamePlacesAndNoValues(t *testing.T) {
	c := compile(t, folder("OrderPlaced.json", placed, "parts/line.json", line))
	for _, test := range []struct{ payload, want string }{
		{`{"order":"o-1","amount":1,"lines":[{"sku":"ab"}],"mail":"a@b.org","currency":"EUR","any":null}`, ""},
		{`{"order":"o-1","amount":1.0}`, ""},
		{`{"amount":5}`, `payload lacks "order"`},
		{`{}`, `payload lacks "order", "amount"`},
		{`{"order":"SECRET","amount":5}`, `payload /order does not match the pattern "^o-[0-9]+$"`},
		{`{"order":"o-1","amount":"SECRET"}`, `payload /amount is of type string, not integer`},
		{`{"order":"o-1","amount":-4711}`, `payload /amount is below 1`},
		{`{"order":"o-1","amount":4711}`, `payload /amount is not below 1000.5`},
		{`{"order":"o-1","amount":5,"step":4711.3}`, `payload /step is no multiple of 0.25`},
		{`{"order":"o-1","amount":5,"mail":"SECRET"}`, `payload /mail is no email`},
		{`{"order":"o-1","amount":5,"currency":"SECRET"}`, `payload /currency breaks the schema: value must be one of 'EUR', 'USD'`},
		{`{"order":"o-1","amount":5,"lines":[{"sku":"ab"},{}]}`, `payload /lines/1 lacks "sku"`},
		{`{"order":"o-1","amount":5,"lines":[{"sku":"S"}]}`, `payload /lines/0/sku breaks the schema: minLength: got 1, want 2`},
		{`{"order":"o-1","amount":5,"a/b~":7}`, `payload /a~1b~0 is of type number, not string`},
		{`{"order":"o-1","amount":5,"other":"SECRET"}`, `payload has names that the schema does not allow: "other"`},
		{`{"order":"o-1","amount":5,"any":4711}`, `payload /any is of type number, not string;payload /any is of type number, not null`},
		{`{"order":"SECRET`, `payload is not valid JSON`},
		{`{"order":"o-1","amount":1e999999999}`, `payload /amount has an exponent above 400`},
		{`{"order":"o-1","amount":5,"lines":[[1E-99999999999999999999]]}`, `payload /lines/0/0 has an exponent above 400`},
	} {
		err := c.Event(postrider.Event{Type: "OrderPlaced", Payload: []byte(test.payload)})
		var got []string
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, err := range joined.Unwrap() {
				problem, _ := errors.AsType[*postrider.EventError](err)
				got = append(got, problem.Field+" "+problem.Problem)
			}
		}
		if strings.Join(got, ";") != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.payload, strings.Join(got, ";"), test.want)
		}
		if text := fmt.Sprint(err); strings.Contains(text, "SECRET") || strings.Contains(text, "4711") {
			t.Errorf("a value is told: %v", err)
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	c := compile(t, folder("A.json", `{"items": {"type": "string"}, "additionalProperties": {"type": "string"}}`))
	many := postrider.Event{Type: "A", Payload: []byte("[" + strings.Repeat("1,", 5000) + "1]")}
	if n := len(strings.Split(c.Event(many).Error(), "\n")); n != 21 {
		t.Errorf("%d problems are told of 5001", n)
	}
	long := postrider.Event{Type: "A", Payload: []byte(`{"` + strings.Repeat("ä", 5000) + `\u0007": 1}`)}
	if n := len(c.Event(long).Error()); n > 400 {
		t.Errorf("a problem is told in %d bytes", n)
	}
	control := postrider.Event{Type: "A", Payload: []byte(`{"a\u001b[2J": 1}`)}
	if text := c.Event(control).Error(); strings.ContainsRune(text, 0x1b) {
		t.Errorf("a control character is told: %q", text)
	}
}

func TestMistakesAreToldTogether(t *testing.T) {
	fsys := folder("a.json", `{"type": "strin"}`, "b.json", `{`, "c.json", `{"$ref": "https://example.com/s.json"}`,
		"d.json", `{"$ref": "lost.json"}`, "e.json", `{"pattern": "("}`, "good.json", "true")
	_, err := postriderjsonschema.Compile(fsys, map[string]string{
		"A": "a.json", "B": "b.json", "C": "c.json", "D": "d.json", "E": "e.json", "F": "nowhere.json", "G": "good.json",
	})
	for _, want := range []string{`"A", file a.json`, `"B", file b.json`, `"C", file c.json`, "read from the files only", `"D", file d.json`,
		"lost.json", `"E", file e.json`, `"F", file nowhere.json`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if strings.Contains(fmt.Sprint(err), `"G"`) {
		t.Errorf("a good schema is named: %v", err)
	}
	if _, err := postriderjsonschema.Files(folder("x.yaml", "")); err == nil {
		t.Error("a folder without schemas passes")
	}
}
