package mongoinbox

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/mongo"
)

// says is a filter that says the same of every message, right or wrong.
type says bool

func (s says) Likely(_ context.Context, _ string, keys []string) []bool {
	return slices.Repeat([]bool{bool(s)}, len(keys))
}

func (says) Applied(context.Context, string, []string) {}

// TestFilterThatIsWrong changes nothing of what is applied, and how often.
func TestFilterThatIsWrong(t *testing.T) {
	for _, filter := range []says{true, false} {
		s := newStage(t)
		in := s.inbox(t, mongo.InboxConfig{Filter: filter})
		s.process(t, in, "1", inbox.Applied)
		s.process(t, in, "1", inbox.Duplicate)
		batch := []inbox.Message{message("2"), message("1"), message("3"), message("2"), message("1")}
		want := []string{"applied", "duplicate", "applied", "duplicate", "duplicate"}
		if got := outcomes(in.ProcessBatch(t.Context(), batch, s.writeEach)); !slices.Equal(got, want) {
			t.Errorf("filter that says %v: outcomes %v, want %v", filter, got, want)
		}
		for _, id := range []string{"1", "2", "3"} {
			s.wantOne(t, id)
		}
	}
}

// TestFilteredDuplicates are read, as a majority of the members has them: they run no effect, and write nothing.
func TestFilteredDuplicates(t *testing.T) {
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{Filter: inbox.NewRecent(100)})
	batch := []inbox.Message{message("a"), message("b")}
	in.ProcessBatch(t.Context(), batch, s.writeEach)
	s.sent()
	for i, r := range in.ProcessBatch(t.Context(), batch, func(context.Context, []inbox.Message) error { return fmt.Errorf("the effect ran") }) {
		if r.Outcome != inbox.Duplicate || r.Receipt.Source != batch[i].Coordinates || r.Receipt.At.IsZero() || r.Receipt.Duplicates != 0 {
			t.Errorf("message %d: %+v, want a duplicate that met its receipt and was not counted in it", i, r)
		}
	}
	sent, _ := s.sent()
	if len(sent) != 1 || sent[0].Index(0).Key() != "find" || sent[0].Lookup("readConcern", "level").StringValue() != "majority" {
		t.Errorf("sent %v, want one find of what a majority has", sent)
	}
}
