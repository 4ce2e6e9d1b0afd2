package embedded_test

import (
	"context"
	"testing"
	"time"

	"github.com/postrider/postrider/nats"
	"github.com/postrider/postrider/nats/embedded"
	"github.com/postrider/postrider/relay"
)

func start(t *testing.T, c embedded.Config) *embedded.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := embedded.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func publish(t *testing.T, c nats.Config, id string) relay.Outcome {
	t.Helper()
	sink, err := nats.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o := sink.Publish(ctx, []relay.Message{{EventID: id, Topic: "events.orders", Payload: []byte("{}")}})[0]
	if o.Class != relay.ClassPublished {
		t.Fatalf("%s: %v", o.Class, o.Err)
	}
	return o
}

func TestDataSurvivesARestart(t *testing.T) {
	c := embedded.Config{Dir: t.TempDir(), Stream: "EVENTS", Subjects: []string{"events.>"}}
	s := start(t, c)
	first := publish(t, nats.Config{InProcess: s}, "1")
	s.Stop()
	s = start(t, c)
	defer s.Stop()
	if again := publish(t, nats.Config{InProcess: s}, "1"); again.Coordinates != first.Coordinates {
		t.Errorf("after a restart the event is at %s, want %s: it is not recognized any more", again.Coordinates, first.Coordinates)
	}
	if second := publish(t, nats.Config{InProcess: s}, "2"); second.Coordinates != "nats:EVENTS@2" {
		t.Errorf("the next event is at %s, want nats:EVENTS@2", second.Coordinates)
	}
}

func TestListen(t *testing.T) {
	s := start(t, embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:-1", Stream: "EVENTS", Subjects: []string{"events.>"}, SyncEvery: time.Second})
	defer s.Stop()
	publish(t, nats.Config{Servers: []string{s.URL()}}, "1")
}

func TestClosedToOthers(t *testing.T) {
	s := start(t, embedded.Config{Dir: t.TempDir()})
	defer s.Stop()
	if s.URL() != "" {
		t.Errorf("the server listens at %s", s.URL())
	}
}

func TestMistakes(t *testing.T) {
	for name, c := range map[string]embedded.Config{
		"no folder":       {},
		"no port":         {Dir: t.TempDir(), Listen: "127.0.0.1"},
		"port no number":  {Dir: t.TempDir(), Listen: "127.0.0.1:nats"},
		"invalid subject": {Dir: t.TempDir(), Stream: "EVENTS", Subjects: []string{"events..x"}},
	} {
		if s, err := embedded.Start(context.Background(), c); err == nil {
			s.Stop()
			t.Errorf("%s: no error", name)
		}
	}
}
