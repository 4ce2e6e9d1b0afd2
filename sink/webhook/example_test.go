package webhook_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sink/webhook"
)

func ExampleOpen() {
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL.Path, r.Header.Get("webhook-id"), r.Header.Get("X-Topic"))
	}))
	defer receiver.Close()
	sink, err := webhook.Open(webhook.Config{
		URL:          receiver.URL + "/orders",
		Secrets:      []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		AllowPrivate: true, // the receiver is on loopback
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sink.Close()
	outcomes := sink.Publish(context.Background(), []relay.Message{{EventID: "e-1", Key: "42", Topic: "orders", Payload: []byte(`{}`)}})
	fmt.Println(outcomes[0].Class)
	// Output:
	// POST /orders e-1 orders
	// published
}
