package kafka

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// brokers returns the real cluster that the tests run against.
func brokers(t testing.TB) []string {
	t.Helper()
	address := os.Getenv("POSTRIDER_TEST_KAFKA")
	if address == "" {
		t.Fatal("POSTRIDER_TEST_KAFKA is not set: `scripts/services up kafka` starts a broker, `scripts/services env` prints its address")
	}
	return strings.Split(address, ",")
}

// admin returns an independent client of the real cluster.
func admin(t testing.TB) *kadm.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers(t)...), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// newTopic creates a topic of its own for the test. Settings alternate key and value.
func newTopic(t testing.TB, partitions int32, settings ...string) string {
	t.Helper()
	name := "test-" + strings.ToLower(rand.Text()[:12])
	createTopic(t, name, partitions, settings...)
	return name
}

// createTopic creates a topic that is deleted when the test ends. Settings alternate key and value.
func createTopic(t testing.TB, name string, partitions int32, settings ...string) {
	t.Helper()
	configs := make(map[string]*string)
	for i := 0; i < len(settings); i += 2 {
		configs[settings[i]] = &settings[i+1]
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	a := admin(t)
	if _, err := a.CreateTopic(ctx, partitions, 1, configs, name); err != nil {
		t.Fatalf("creating topic %s: %v", name, err)
	}
	for visible := false; !visible; {
		topics, err := a.ListTopics(ctx, name)
		if err != nil {
			t.Fatalf("waiting for topic %s: %v", name, err)
		}
		visible = topics[name].Err == nil && len(topics[name].Partitions) == int(partitions)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := a.DeleteTopic(ctx, name); err != nil {
			t.Logf("deleting topic %s: %v", name, err)
		}
	})
}
