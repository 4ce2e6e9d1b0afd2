package outbox

import (
	"maps"
	"reflect"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// readBack is a copy as the relay of its outbox reads it.
func readBack(c postrider.Event) relay.Event {
	return relay.Event{
		ID: "4711", EventID: c.ID, AggregateType: c.AggregateType, AggregateID: c.AggregateID, EventType: c.Type,
		Topic: c.Topic, Payload: c.Payload, ContentType: c.ContentType, Headers: maps.Clone(c.Headers),
	}
}

func TestACopyBecomesTheEventAgain(t *testing.T) {
	version := int64(7)
	for name, e := range map[string]relay.Event{
		"plain": {EventID: "00000000-0000-4000-8000-000000000001", AggregateType: "order", AggregateID: "17", EventType: "Paid",
			Payload: []byte("{}"), ContentType: "application/json", Headers: map[string]string{"traceparent": "t"}},
		"everything": {EventID: "msg-1", AggregateType: "order", AggregateID: "17", PartitionKey: "tenant", EventType: "Paid",
			AggregateVersion: &version, Topic: "special", Payload: []byte{0, 255}, ContentType: "application/protobuf",
			Headers: map[string]string{"tenant": "eu"}},
		"an id in upper case": {EventID: "ABCDEFAB-0000-4000-8000-000000000001", AggregateID: "17", ContentType: "a/b", Headers: map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := copyOf(&e)
			if c.AggregateID != e.Key() || c.AggregateVersion != 0 || c.DedupKey != c.ID || c.ID != CopyID(e.EventID) {
				t.Errorf("copy %+v", c)
			}
			got := readBack(c)
			Restore(&got)
			want := e
			want.ID = "4711"
			if got.Key() != e.Key() || !reflect.DeepEqual(got, want) {
				t.Errorf("restored\n%+v, want\n%+v", got, want)
			}
		})
	}
}

// Nobody can put on an event what Restore would take for the relay's own.
func TestHeadersOfAnEventAreNotTakenForThoseOfACopy(t *testing.T) {
	e := relay.Event{EventID: "00000000-0000-4000-8000-000000000001", AggregateID: "17", Headers: map[string]string{
		"POSTRIDER-EVENT-ID": "another", HeaderAggregateID: "another", HeaderVersion: "no number", "kept": "yes",
	}}
	c := copyOf(&e)
	if !maps.Equal(c.Headers, map[string]string{"kept": "yes"}) {
		t.Errorf("headers %v", c.Headers)
	}
}

func TestIDsOfCopies(t *testing.T) {
	const id = "abcdefab-0000-4000-8000-000000000001"
	if got := CopyID("ABCDEFAB-0000-4000-8000-000000000001"); got != id {
		t.Errorf("of a UUID: %s", got)
	}
	if a := CopyID("17"); a != CopyID("17") || a == CopyID("18") || a == CopyID("017") {
		t.Error("ids that are made of others are not told apart, or not the same each time")
	}
	if _, err := postrider.Prepare(t.Context(), postrider.Config{}, []postrider.Event{{
		ID: CopyID("17"), AggregateType: "a", AggregateID: "b", Type: "c", Payload: []byte("{}"),
	}}); err != nil {
		t.Error(err)
	}
}

func TestAVersionThatIsNoNumber(t *testing.T) {
	e := relay.Event{Headers: map[string]string{HeaderVersion: "seven"}}
	if Restore(&e); e.Malformed == nil || e.AggregateVersion != nil {
		t.Errorf("restored %+v", e)
	}
}

func TestARowThatIsNoCopyStaysAsItIs(t *testing.T) {
	e := relay.Event{EventID: "1", AggregateID: "2", Headers: map[string]string{"a": "b"}}
	want := relay.Event{EventID: "1", AggregateID: "2", Headers: map[string]string{"a": "b"}}
	if Restore(&e); !reflect.DeepEqual(e, want) {
		t.Errorf("restored %+v", e)
	}
}
