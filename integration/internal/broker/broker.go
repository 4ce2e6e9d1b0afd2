// Package broker gives tests topics of their own on a real Kafka, and reads them back with kcat, a client that shares
// no code with Postrider.
package broker

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/integration/internal/ledger"
)

const timeout = time.Minute

// Topic creates a topic with a name that no other has. settings are those of the topic, such as max.message.bytes.
func Topic(t *testing.T, address string, partitions int32, settings map[string]string) string {
	t.Helper()
	name := "t" + strings.ToLower(rand.Text())
	CreateTopic(t, address, name, partitions, settings)
	return name
}

// CreateTopic creates a topic. It is deleted after the test if its broker still runs by then.
func CreateTopic(t *testing.T, address, name string, partitions int32, settings map[string]string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	values := make(map[string]*string)
	for key, value := range settings {
		values[key] = &value
	}
	admin := kadm.NewClient(client)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if _, err := admin.CreateTopic(ctx, partitions, 1, values, name); err != nil {
		t.Fatalf("create topic %s at %s: %v", name, address, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if _, err := admin.DeleteTopic(ctx, name); err != nil {
			t.Logf("topic %s stays: %v", name, err)
		}
	})
}

// Messages returns all that a topic holds now, byte for byte as long as it is UTF-8. A payload of null becomes nil.
func Messages(t *testing.T, address, topic string, options ...string) []ledger.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	arguments := append([]string{"-b", address, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J"}, options...)
	command := exec.CommandContext(ctx, "kcat", arguments...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("kcat %s: %v\n%s", strings.Join(arguments, " "), err, stderr.String())
	}
	messages, err := parse(&stdout)
	if err != nil {
		t.Fatalf("output of kcat: %v", err)
	}
	return messages
}

// record is one line of kcat -J.
type record struct {
	Topic     string   `json:"topic"`
	Partition int      `json:"partition"`
	Offset    int64    `json:"offset"`
	Headers   []string `json:"headers"` // names and values in turn
	Key       string   `json:"key"`
	Payload   *string  `json:"payload"`
}

func parse(output *bytes.Buffer) ([]ledger.Message, error) {
	var messages []ledger.Message
	decoder := json.NewDecoder(bufio.NewReader(output))
	for decoder.More() {
		var r record
		if err := decoder.Decode(&r); err != nil {
			return nil, err
		}
		if len(r.Headers)%2 != 0 {
			return nil, fmt.Errorf("partition %d, offset %d: %d names and values of headers", r.Partition, r.Offset, len(r.Headers))
		}
		m := ledger.Message{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key}
		for i := 0; i < len(r.Headers); i += 2 {
			m.Headers = append(m.Headers, ledger.Header{Name: r.Headers[i], Value: r.Headers[i+1]})
		}
		if r.Payload != nil {
			m.Payload = []byte(*r.Payload)
		}
		messages = append(messages, m)
	}
	return messages, nil
}
