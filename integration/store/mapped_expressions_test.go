package store

import (
	"testing"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/sqlstore"
)

// TestSQLThatTheDatabaseRefusesIsToldWithItsKey before and after Init.
func TestSQLThatTheDatabaseRefusesIsToldWithItsKey(t *testing.T) {
	eachServer(t, "", func(t *testing.T, m mapped) {
		good := m.mapping
		good.AggregateType, good.HeaderTerms, good.Filter = "what, (lower(who))", map[string]string{"X-Who": "(upper(who))"}, "who <> 'postrider' OR who IS NULL"
		tests := []struct {
			name   string
			change func(*sqlstore.Mapping)
			want   string
			hint   string
		}{
			{"a term", func(m *sqlstore.Mapping) { m.AggregateType = "what, (lowwer(who))" }, "outbox.columns.aggregate_type: ", "correct the SQL (lowwer(who)), which"},
			{"a payload", func(m *sqlstore.Mapping) { m.Payload = "(boddy)" }, "outbox.columns.payload: ", "correct the SQL (boddy), which"},
			{"a header", func(m *sqlstore.Mapping) { m.HeaderTerms = map[string]string{"X-Who": "(who +)"} }, "outbox.headers.X-Who: ", "correct the SQL (who +), which"},
			{"a parameter", func(m *sqlstore.Mapping) { m.HeaderTerms = map[string]string{"X-Who": "(:1)"} }, "outbox.headers.X-Who: ", "correct the SQL (:1), which"},
			{"the filter", func(m *sqlstore.Mapping) { m.Filter = "tenant = 7" }, "outbox.filter: ", "correct the SQL (tenant = 7), which"},
		}
		for _, when := range []string{"before", "after"} {
			for _, test := range tests {
				bad := m
				bad.mapping = good
				test.change(&bad.mapping)
				bad.finds(t, "error", test.want)
				bad.finds(t, "error", test.hint)
				if list := errorsOf(bad.openMapped(t).Verify(t.Context())); len(list) != 1 {
					t.Errorf("%s, %s Init: %+v", test.name, when, list)
				}
			}
			m.mapping = good
			m.init(t)
		}
		if list := errorsOf(m.openMapped(t).Verify(t.Context())); len(list) > 0 {
			t.Errorf("%+v", list)
		}
	})
}

func errorsOf(findings []operator.Finding) (list []operator.Finding) {
	for _, f := range findings {
		if f.Level == operator.LevelError {
			list = append(list, f)
		}
	}
	return list
}
