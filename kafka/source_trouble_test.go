package kafka

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/relay"
)

// TestFetchTellsTroubles wants the reason why nothing can be read, instead of silence.
func TestFetchTellsTroubles(t *testing.T) {
	t.Parallel()
	login := SASL{Mechanism: MechanismPlain, User: "reader", Password: "hidden"}
	secured := func(rights ...kfake.ACL) []string {
		return newCluster(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("PLAIN", login.User, login.Password, rights...)).ListenAddrs()
	}
	topicRight := right(kmsg.ACLResourceTypeTopic, orders, kmsg.ACLOperationRead)
	groupRight := right(kmsg.ACLResourceTypeGroup, "g", kmsg.ACLOperationRead)
	for name, c := range map[string]struct {
		config SourceConfig
		want   string
	}{
		"no broker":       {SourceConfig{Brokers: []string{loopback(servers.FreePort(t))}, Topics: []string{orders}}, "connection refused"},
		"missing topic":   {SourceConfig{Brokers: brokers(t), Topics: []string{"test-missing"}}, "test-missing"},
		"wrong password":  {SourceConfig{Brokers: loginBroker(t), Topics: []string{orders}, SASL: login}, "SASL_AUTHENTICATION_FAILED"},
		"forbidden topic": {SourceConfig{Brokers: secured(groupRight), Topics: []string{orders}, SASL: login}, "TOPIC_AUTHORIZATION_FAILED"},
		"forbidden group": {SourceConfig{Brokers: secured(topicRight), Topics: []string{orders}, SASL: login}, "GROUP_AUTHORIZATION_FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.Group = "g"
			source := newSource(t, c.config)
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			got, err := source.Fetch(ctx, 10)
			if len(got) > 0 || err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Fetch returned %d deliveries and %v, want an error with %q", len(got), err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("reason %q shows the password", err)
			}
			if err := source.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// loginBroker is a real one: the fake one ends the connection without an answer.
func loginBroker(t testing.TB) []string {
	return []string{loopback(servers.Launch(t, "kafka", "KAFKA_SASL=plain").Port())}
}

// TestTopicIsCreatedLater has one of two topics come after the source.
func TestTopicIsCreatedLater(t *testing.T) {
	t.Parallel()
	there, later := newTopic(t, 2), "test-later-"+strings.ToLower(rand.Text()[:12])
	sink := openSink(t, Config{Brokers: brokers(t)})
	source := newSource(t, SourceConfig{Brokers: brokers(t), Group: there, Topics: []string{there, later}})
	defer source.Close()
	wantOutcome(t, sink.Publish(testContext(t), []relay.Message{message(there, "a", "a1")})[0], relay.ClassPublished)
	wantFetched(t, source, "a1")
	if _, err := source.Fetch(testContext(t), 1); err == nil || !strings.Contains(err.Error(), later) {
		t.Errorf("Fetch returned %v, want an error that names topic %s", err, later)
	}
	createTopic(t, later, 2)
	wantOutcome(t, sink.Publish(testContext(t), []relay.Message{message(later, "b", "b1")})[0], relay.ClassPublished)
	ctx := testContext(t)
	got, err := source.Fetch(ctx, 1)
	for err != nil && ctx.Err() == nil { // until the client has looked again
		got, err = source.Fetch(ctx, 1)
	}
	if err != nil || string(got[0].Message.Payload) != "b1" {
		t.Errorf("Fetch returned %v and %v, want b1", got, err)
	}
}

// wantFetched fetches messages with these payloads, in this order, and nothing else.
func wantFetched(t testing.TB, s *Source, payloads ...string) (deliveries []*consumer.Delivery) {
	t.Helper()
	for len(deliveries) < len(payloads) {
		got, err := s.Fetch(testContext(t), len(payloads)-len(deliveries))
		if err != nil {
			t.Fatal(err)
		}
		deliveries = append(deliveries, got...)
	}
	for i, d := range deliveries {
		if got := string(d.Message.Payload); got != payloads[i] {
			t.Errorf("message %d is %q, want %q", i, got, payloads[i])
		}
	}
	return deliveries
}

func right(resource kmsg.ACLResourceType, name string, operation kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: resource, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true}
}

func newSource(t testing.TB, c SourceConfig) *Source {
	t.Helper()
	s, err := OpenSource(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func loopback(port int) string { return fmt.Sprint("127.0.0.1:", port) }
