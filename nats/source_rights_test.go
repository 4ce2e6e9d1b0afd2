package nats

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// TestSourceRights reads with no more rights than the package comment lists, and shows that a missing one is told.
func TestSourceRights(t *testing.T) {
	t.Parallel()
	rights := []string{"$JS.API.STREAM.INFO.EVENTS"}
	for _, name := range []string{"group", "group-retry-1s"} {
		rights = append(rights, "$JS.API.CONSUMER.INFO.EVENTS."+name, "$JS.API.CONSUMER.MSG.NEXT.EVENTS."+name, "$JS.ACK.EVENTS."+name+".>",
			"$JS.API.CONSUMER.CREATE.EVENTS."+name)
	}
	s := runServer(t, server.Options{JetStream: true, Users: []*server.User{
		{Username: "all", Password: "secret", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: rights}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}},
		{Username: "some", Password: "secret", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: rights[2:3]}}},
		{Username: "admin", Password: "secret"},
	}})
	js := client(t, "nats://admin:secret@"+s.Addr().String())
	_, err := js.CreateStream(testContext(t), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"events.>"}})
	must(t, err)
	for _, subject := range []string{"events.a", "events.a.retry.1s"} {
		_, err = js.Publish(testContext(t), subject, []byte("1"))
		must(t, err)
	}
	config := SourceConfig{Servers: []string{s.ClientURL()}, User: "all", Password: "secret", Stream: "EVENTS", Subjects: []string{"events.a", "events.a.retry.1s"}}
	source := openSource(t, config)
	defer source.Close()
	got, _ := fetch(t, source, 2)
	source.Return(got...)
	got, _ = fetch(t, source, 2)
	source.Finish(got...)
	must(t, source.Flush(testContext(t)))

	config.User = "some"
	denied := openSource(t, config)
	defer denied.Close()
	wantFailure(t, denied, rights[2])
}
