package mongoinbox

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/mongo"
)

func outcomes(results []inbox.Result) (list []string) {
	for _, r := range results {
		if r.Err != nil {
			list = append(list, string(inbox.ClassOf(r.Err)))
			continue
		}
		list = append(list, string(r.Outcome))
	}
	return list
}

func TestBatchAppliesWhatIsFreshInOrderAndInOneTransaction(t *testing.T) {
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{})
	s.process(t, in, "c1", inbox.Applied)
	s.sent()
	var calls [][]string
	batch := []inbox.Message{message("d1"), message("c1"), message("b1"), message("d1"), message("a1"), message("d1"), message("c1")}
	results := in.Handler(func(ctx context.Context, fresh []inbox.Message) error {
		var ids []string
		for _, m := range fresh {
			ids = append(ids, m.EventID())
		}
		calls = append(calls, ids)
		return s.writeEach(ctx, fresh)
	})(t.Context(), batch)

	want := []string{"applied", "duplicate", "applied", "duplicate", "applied", "duplicate", "duplicate"}
	if got := outcomes(results); !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	if want := [][]string{{"d1", "b1", "a1"}}; !reflect.DeepEqual(calls, want) {
		t.Errorf("effects %v, want %v", calls, want)
	}
	for i, r := range results {
		if r.Receipt.DedupKey != batch[i].EventID() || r.Receipt.Source != batch[i].Coordinates {
			t.Errorf("message %d: receipt %+v", i, r.Receipt)
		}
	}
	var names []string
	sent, _ := s.sent()
	for _, command := range sent {
		names = append(names, command.Index(0).Key())
	}
	if want := []string{"update", "find", "insert", "insert", "insert", "commitTransaction"}; !slices.Equal(names, want) {
		t.Errorf("sent %q, want %q", names, want)
	}
	var ids []string
	writes, _ := sent[0].Lookup("updates").Array().Values()
	for _, write := range writes {
		ids = append(ids, write.Document().Lookup("q", "_id").StringValue())
	}
	if want := []string{"a1\nbilling", "b1\nbilling", "c1\nbilling", "d1\nbilling"}; !slices.Equal(ids, want) {
		t.Errorf("wrote the receipts %q, want %q: batches in opposite orders would be in each other's way", ids, want)
	}
	for id, want := range map[string]int64{"a1": 0, "b1": 0, "c1": 2, "d1": 2} {
		s.wantOne(t, id)
		if found := s.receipts(t, id); found[0].Duplicates != want || (found[0].LastDuplicateAt == nil) != (want == 0) {
			t.Errorf("%s: receipts %+v, want %d duplicates", id, found, want)
		}
	}
}

func TestBadMessageOfABatchHarmsOnlyItsKey(t *testing.T) {
	failed := errors.New("no stock")
	keyed := func(key string, n int) inbox.Message {
		m := message(fmt.Sprint(key, n))
		m.Key = key
		return m
	}
	s := newStage(t)
	noID := keyed("c", 0)
	noID.Headers = nil
	batch := []inbox.Message{
		keyed("a", 1), keyed("b", 1), noID, keyed("b", 2), keyed("b", 3), keyed("a", 2), keyed("c", 1), message("none"),
	}
	results := s.inbox(t, mongo.InboxConfig{}).ProcessBatch(t.Context(), batch, func(ctx context.Context, fresh []inbox.Message) error {
		if err := s.writeEach(ctx, fresh); err != nil {
			return err
		}
		if slices.ContainsFunc(fresh, func(m inbox.Message) bool { return m.EventID() == "b2" }) {
			return failed
		}
		return nil
	})
	want := []string{"applied", "applied", "malformed", "retry", "skipped", "applied", "skipped", "applied"}
	if got := outcomes(results); !slices.Equal(got, want) || !errors.Is(results[3].Err, failed) {
		t.Errorf("outcomes %v, error %v, want %v", got, results[3].Err, want)
	}
	for i, m := range batch {
		want := int64(0)
		if results[i].Outcome == inbox.Applied {
			want = 1
		}
		if n := s.effects(t, m.EventID()); n != want {
			t.Errorf("message %d: %d effects, want %d", i, n, want)
		}
	}
}

// Batches that overlap, in opposite orders, write their receipts in one order.
func TestBatchesAtTheSameTimeApplyEachOnce(t *testing.T) {
	const workers, rounds, size = 8, 10, 50
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{})
	for round := range rounds {
		var batch []inbox.Message
		for i := range size {
			batch = append(batch, message(fmt.Sprintf("%d-%d", round, i)))
		}
		turns := make(chan int, workers)
		for w := range workers {
			turns <- w
		}
		for _, results := range atOnce(workers, func() []inbox.Result {
			w, mine := <-turns, slices.Clone(batch)
			if w%2 == 1 {
				slices.Reverse(mine)
			}
			return in.ProcessBatch(t.Context(), mine[w:], s.writeEach)
		}) {
			for _, r := range results {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
		}
	}
	n, err := s.db.Collection("effects").CountDocuments(t.Context(), bson.M{})
	if err != nil {
		t.Fatal(err)
	}
	var different []string
	if err := s.db.Collection("effects").Distinct(t.Context(), "what", bson.M{}).Decode(&different); err != nil {
		t.Fatal(err)
	}
	if n != rounds*size || len(different) != rounds*size {
		t.Errorf("%d effects of %d messages, want %d of each", n, len(different), rounds*size)
	}
}
