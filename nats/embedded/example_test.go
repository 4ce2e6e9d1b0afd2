package embedded_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/postrider/postrider/nats"
	"github.com/postrider/postrider/nats/embedded"
	"github.com/postrider/postrider/relay"
)

func ExampleStart() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	server, err := embedded.Start(ctx, embedded.Config{Dir: dir, Stream: "ORDERS", Subjects: []string{"orders.>"}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	sink, err := nats.Open(nats.Config{InProcess: server})
	if err != nil {
		log.Fatal(err)
	}
	defer sink.Close()
	outcomes := sink.Publish(ctx, []relay.Message{{EventID: "1", Key: "42", Topic: "orders.created", Payload: []byte(`{"total":7}`)}})
	fmt.Println(outcomes[0].Class, outcomes[0].Coordinates)
	// Output: published nats:ORDERS@1
}
