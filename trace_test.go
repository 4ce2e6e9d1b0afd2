package postrider_test

import (
	"context"
	"maps"
	"testing"

	"github.com/postrider/postrider"
)

func TestTraceFillsHeaders(t *testing.T) {
	type key struct{}
	trace := func(ctx context.Context) map[string]string {
		return map[string]string{"traceparent": ctx.Value(key{}).(string), "tracestate": "a=1"}
	}
	for name, c := range map[string]struct{ own, want map[string]string }{
		"none":             {nil, map[string]string{"traceparent": "00-1", "tracestate": "a=1"}},
		"other":            {map[string]string{"x": "y"}, map[string]string{"x": "y", "traceparent": "00-1", "tracestate": "a=1"}},
		"own tracestate":   {map[string]string{"tracestate": "b=2"}, map[string]string{"traceparent": "00-1", "tracestate": "b=2"}},
		"own traceparent":  {map[string]string{"traceparent": "00-2"}, map[string]string{"traceparent": "00-2"}},
		"in another case":  {map[string]string{"Traceparent": "00-2"}, map[string]string{"Traceparent": "00-2"}},
		"own trace, whole": {map[string]string{"traceparent": "00-2", "tracestate": "b=2"}, map[string]string{"traceparent": "00-2", "tracestate": "b=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var tx execTx
			e := event()
			e.Headers = maps.Clone(c.own)
			ctx := context.WithValue(t.Context(), key{}, "00-1")
			if _, err := newOutbox(t, postrider.Config{Trace: trace}).Add(ctx, &tx, e); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(e.Headers, c.own) {
				t.Errorf("the caller's headers became %v", e.Headers)
			}
			got := map[string]string{}
			for name, value := range tx.column("headers")[0].(map[string]any) {
				got[name] = value.(string)
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("headers %v, want %v", got, c.want)
			}
		})
	}
}

func TestTraceWithoutATraceLeavesHeadersOut(t *testing.T) {
	var tx execTx
	outbox := newOutbox(t, postrider.Config{Trace: func(context.Context) map[string]string { return nil }})
	if _, err := outbox.Add(t.Context(), &tx, event()); err != nil {
		t.Fatal(err)
	}
	if got := tx.column("headers")[0]; got != nil {
		t.Errorf("headers %v, want NULL", got)
	}
}
