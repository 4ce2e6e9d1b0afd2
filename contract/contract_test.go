package contract_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/contract"
	"github.com/postrider/postrider/inbox"
)

func newContract(t *testing.T, cfg contract.Config) *contract.Contract {
	t.Helper()
	c, err := contract.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFields(t *testing.T) {
	all := []contract.Field{
		{Path: "", Kind: contract.Object},
		{Path: "/id", Kind: contract.String},
		{Path: "/amount", Kind: contract.Integer},
		{Path: "/rate", Kind: contract.Number},
		{Path: "/paid", Kind: contract.Boolean},
		{Path: "/lines", Kind: contract.Array},
		{Path: "/lines/0/sku", Kind: contract.String},
		{Path: "/a~1b/~01", Kind: contract.Object},
		{Path: "/anything"},
		{Path: "/note", Kind: contract.String, Optional: true},
	}
	const good = `{"id":"1","amount":-9007199254740993,"rate":3,"paid":false,"lines":[{"sku":"x"}],"a/b":{"~1":{}},"anything":0}`
	for _, test := range []struct{ name, payload, want string }{
		{"good", good, ""},
		{"optional null", strings.Replace(good, `"id"`, `"note":null,"id"`, 1), ""},
		{"optional there", strings.Replace(good, `"id"`, `"note":"n","id"`, 1), ""},
		{"optional of another kind", strings.Replace(good, `"id"`, `"note":{},"id"`, 1), "/note is of kind object, not string"},
		{"missing", strings.Replace(good, `"id"`, `"ID"`, 1), "/id is missing"},
		{"null", strings.Replace(good, `"id":"1"`, `"id":null`, 1), "/id is null"},
		{"null where anything goes", strings.Replace(good, `"anything":0`, `"anything":null`, 1), "/anything is null"},
		{"fraction", strings.Replace(good, `-9007199254740993`, `1.5`, 1), "/amount is of kind number, not integer"},
		{"exponent", strings.Replace(good, `-9007199254740993`, `1e999999999`, 1), "/amount is of kind number, not integer"},
		{"number as text", strings.Replace(good, `"rate":3`, `"rate":"3"`, 1), "/rate is of kind string, not number"},
		{"text as number", strings.Replace(good, `"id":"1"`, `"id":1`, 1), "/id is of kind integer, not string"},
		{"boolean as text", strings.Replace(good, `false`, `"false"`, 1), "/paid is of kind string, not boolean"},
		{"no element", strings.Replace(good, `[{"sku":"x"}]`, `[]`, 1), "/lines/0/sku is missing"},
		{"no parent", strings.Replace(good, `[{"sku":"x"}]`, `[7]`, 1), "/lines/0/sku is missing"},
		{"array as object", strings.Replace(good, `[{"sku":"x"}]`, `{"0":{"sku":"x"}}`, 1), "/lines is of kind object, not array"},
		{"no JSON", `{"secret`, "is not valid JSON"},
		{"nothing", ``, "is not valid JSON"},
		{"two values", good + `{}`, "has something behind its JSON value"},
		{"a closing brace behind it", good + `}`, "has something behind its JSON value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newContract(t, contract.Config{Fields: map[string][]contract.Field{"Placed": all}})
			err := c.Event(postrider.Event{Type: "Placed", Payload: []byte(test.payload)})
			got, _ := errors.AsType[*postrider.EventError](err)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (got == nil || got.Field != "payload" || got.Problem != test.want):
				t.Errorf("got %v, want payload %s", err, test.want)
			}
		})
	}
}

func TestPathsIntoArrays(t *testing.T) {
	for path, found := range map[string]bool{"/0": true, "/1/n": true, "/01": false, "/-1": false, "/2": false, "/-": false, "/n": false} {
		c := newContract(t, contract.Config{Fields: map[string][]contract.Field{"A": {{Path: path}}}})
		if err := c.Event(postrider.Event{Type: "A", Payload: []byte(`[0, {"n": 1}]`)}); (err == nil) != found {
			t.Errorf("%s: %v, want found %v", path, err, found)
		}
	}
}

func TestEveryProblemIsTold(t *testing.T) {
	c := newContract(t, contract.Config{
		Fields: map[string][]contract.Field{"Placed": {{Path: "/a", Kind: contract.String}, {Path: "/b"}}},
		Checks: map[string]contract.Check{"Placed": func([]byte) error { return errors.New("is of a bad size") }},
	})
	err := c.Message(message("Placed", `{"a":1}`))
	const want = `event "7" at kafka:orders/3@1042 of type "Placed" breaks its contract: payload /a is of kind integer, not string; ` +
		"payload /b is missing; payload is of a bad size"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if class := inbox.ClassOf(err); class != inbox.ClassMalformed {
		t.Errorf("the class is %s", class)
	}
	if err := c.Message(message("Placed", `{"a":"","b":1}`)); inbox.ClassOf(err) != inbox.ClassMalformed {
		t.Errorf("the check does not count: %v", err)
	}
}

func TestUnknownTypes(t *testing.T) {
	cfg := contract.Config{Fields: map[string][]contract.Field{"Placed": {{Path: "/a"}}}}
	bytes := postrider.Event{Type: "Shipped", Payload: []byte{0xff}}
	if err := newContract(t, cfg).Event(bytes); err != nil {
		t.Errorf("a type without a contract was looked at: %v", err)
	}
	if err := newContract(t, cfg).Message(message("", "\xff")); err != nil {
		t.Errorf("a message without a type was looked at: %v", err)
	}
	cfg.Strict = true
	err := newContract(t, cfg).Event(bytes)
	if problem, ok := errors.AsType[*postrider.EventError](err); !ok || problem.Field != "event_type" {
		t.Errorf("a strict contract says %v", err)
	}
	if err := newContract(t, cfg).Message(message("Shipped", "{}")); inbox.ClassOf(err) != inbox.ClassMalformed {
		t.Errorf("a strict contract says %v", err)
	}
}

func TestMistakesAreToldTogether(t *testing.T) {
	_, err := contract.New(contract.Config{
		Fields: map[string][]contract.Field{"A": {{Path: "id"}, {Path: "/n", Kind: "int"}}, "B": {{Path: "x"}}},
		Checks: map[string]contract.Check{"C": nil},
	})
	for _, want := range []string{`Fields["A"]: path "id"`, `kind of "/n" is "int"`, `Fields["B"]: path "x"`, `Checks["C"] is nil`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// untouchable is a transaction that nothing may be written to.
type untouchable struct{ t *testing.T }

func (u untouchable) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	u.t.Error("something was written")
	return nil, errors.New("something was written")
}

func TestAddRefusesWhatBreaksItsContract(t *testing.T) {
	c := newContract(t, contract.Config{Fields: map[string][]contract.Field{"Placed": {{Path: "/id"}, {Path: "/n"}}}})
	for _, binary := range []bool{false, true} {
		outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL, Binary: binary, Validate: c.Event})
		if err != nil {
			t.Fatal(err)
		}
		good := postrider.Event{
			AggregateType: "order", AggregateID: "1", Type: "Placed", ContentType: "application/json", Payload: []byte(`{"id":1,"n":2}`),
		}
		bad := good
		bad.Payload = []byte(`{"n":2}`)
		worse := good
		worse.Payload = []byte(`[]`)
		_, err = outbox.Add(t.Context(), untouchable{t}, good, bad, good, worse)
		problems, _ := errors.AsType[postrider.EventErrors](err)
		var got []string
		for _, p := range problems {
			got = append(got, p.Error())
		}
		const want = "event 1: payload /id is missing|event 3: payload /id is missing|event 3: payload /n is missing"
		if strings.Join(got, "|") != want {
			t.Errorf("binary %v: got %v\nwant %s", binary, got, want)
		}
		if err := outbox.AddNew(t.Context(), untouchable{t}, bad); err == nil {
			t.Errorf("binary %v: AddNew takes what Add refuses", binary)
		}
	}
}

func message(eventType, payload string) inbox.Message {
	return inbox.Message{
		Coordinates: "kafka:orders/3@1042",
		Headers:     []inbox.Header{{Name: "X-Event-Id", Value: "7"}, {Name: "X-Event-Type", Value: eventType}},
		Payload:     []byte(payload),
	}
}
