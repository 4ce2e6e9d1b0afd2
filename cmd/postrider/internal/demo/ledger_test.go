package demo

import "testing"

func TestLedgerFindsWhatIsWrong(t *testing.T) {
	committed := map[string]int{"a1": 1, "a2": 2, "a3": 3, "b1": 1}
	all := []message{{"a1", "a"}, {"b1", "b"}, {"a2", "a"}, {"a3", "a"}}
	once := map[string]int{"a1": 1, "a2": 1, "a3": 1, "b1": 1}
	for _, test := range []struct {
		name     string
		messages []message
		applied  map[string]int
		want     Ledger
		sound    bool
	}{
		{"all is well", all, once, Ledger{Committed: 4, Published: 4, Applied: 4}, true},
		{
			"published twice, behind a later one of its key", append(all, message{"a2", "a"}), once,
			Ledger{Committed: 4, Published: 4, Applied: 4, DuplicatesPublished: 1}, true,
		},
		{
			"applied twice", all, map[string]int{"a1": 1, "a2": 3, "a3": 1, "b1": 1},
			Ledger{Committed: 4, Published: 4, Applied: 4, DuplicatesApplied: 2}, false,
		},
		{"not published", all[1:], once, Ledger{Committed: 4, Published: 3, Applied: 4, Missing: 1}, false},
		{
			"not applied", all, map[string]int{"a1": 1, "a2": 1, "a3": 1},
			Ledger{Committed: 4, Published: 4, Applied: 3, Missing: 1}, false,
		},
		{
			"published although it was rolled back", append(all, message{"x", "a"}), once,
			Ledger{Committed: 4, Published: 5, Applied: 4, Ghosts: 1}, false,
		},
		{
			"published and applied although it was rolled back", append(all, message{"x", "a"}),
			map[string]int{"a1": 1, "a2": 1, "a3": 1, "b1": 1, "x": 1},
			Ledger{Committed: 4, Published: 5, Applied: 5, Ghosts: 1}, false,
		},
		{
			"an event overtook an earlier one of its key", []message{{"a1", "a"}, {"b1", "b"}, {"a3", "a"}, {"a2", "a"}}, once,
			Ledger{Committed: 4, Published: 4, Applied: 4, OutOfOrder: 1}, false,
		},
		{
			"nothing happened", nil, nil, Ledger{Committed: 4, Missing: 4}, false,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := compare(committed, test.messages, test.applied)
			if got != test.want || got.Sound() != test.sound {
				t.Errorf("got %+v, sound %v", got, got.Sound())
			}
		})
	}
}
