package contract_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/postrider/postrider/contract"
	"github.com/postrider/postrider/inbox"
)

func TestHandlerGivesOnlyWhatKeepsItsContract(t *testing.T) {
	c := newContract(t, contract.Config{Fields: map[string][]contract.Field{"Placed": {{Path: "/id"}}}})
	var got []string
	handler := c.Handler(func(_ context.Context, batch []inbox.Message) []inbox.Result {
		results := make([]inbox.Result, len(batch))
		for i, m := range batch {
			got = append(got, m.Key)
			if m.Key == "fails" {
				results[i].Err = errors.New("it fails")
			}
		}
		return results
	})
	var batch []inbox.Message
	for _, text := range []string{"a good", "b bad", "b good", "a good", "fails good", "fails bad", " bad", " good"} {
		key, kind, _ := strings.Cut(text, " ")
		payload := map[string]string{"good": `{"id":1}`, "bad": `{}`}[kind]
		m := message("Placed", payload)
		m.Key = key
		batch = append(batch, m)
	}
	var classes []string
	for _, r := range handler(t.Context(), batch) {
		classes = append(classes, string(inbox.ClassOf(r.Err)))
	}
	if want := []string{"", "malformed", "skipped", "", "retry", "skipped", "malformed", ""}; fmt.Sprint(classes) != fmt.Sprint(want) {
		t.Errorf("classes are %q, want %q", classes, want)
	}
	if want := []string{"a", "a", "fails", ""}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("applied were %q, want %q", got, want)
	}
}

func TestHandlerCallsNobodyWithoutMessages(t *testing.T) {
	c := newContract(t, contract.Config{Strict: true})
	handler := c.Handler(func(context.Context, []inbox.Message) []inbox.Result {
		t.Error("the handler was called")
		return nil
	})
	if r := handler(t.Context(), []inbox.Message{message("Placed", "{}")}); len(r) != 1 || inbox.ClassOf(r[0].Err) != inbox.ClassMalformed {
		t.Errorf("got %v", r)
	}
}

func TestHandlerTakesNoWrongNumberOfResults(t *testing.T) {
	handler := newContract(t, contract.Config{}).Handler(func(context.Context, []inbox.Message) []inbox.Result { return make([]inbox.Result, 3) })
	if r := handler(t.Context(), []inbox.Message{message("Placed", "{}")}); r != nil {
		t.Errorf("got %v", r)
	}
}
