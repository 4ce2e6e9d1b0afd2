package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"
)

// letter is a dead letter of a script: the headers that a consumer writes, and a payload.
func letter(n int, origin, eventType, failure, payload string) (headers [][2]string, body string) {
	return [][2]string{
		{"X-Event-Id", fmt.Sprintf("00000000-0000-4000-8000-%012d", n)}, {"X-Event-Type", eventType}, {"X-Origin-Topic", origin},
		{"X-Failure-Consumer", "billing"}, {"X-Failure-Class", "permanent"}, {"X-Failure-Message", failure}, {"X-Failure-Attempts", "3"},
		{"X-Failure-First-At", "2026-05-01T12:00:00.000Z"}, {"X-Failure-Last-At", fmt.Sprintf("2026-05-01T12:0%d:00.000Z", n)},
	}, payload
}

// newLetters SERVER: makes two topics on the server of POSTRIDER_TEST_SERVER, which are gone after the script: ORIGIN, which is empty, and
// TOPIC with four dead letters of it. SERVER is the address. At
// Kafka and RabbitMQ it only sets the variables, and there are no topics.
func newLetters(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: letters SERVER")
	}
	variable := "POSTRIDER_TEST_" + strings.ToUpper(args[0])
	server := os.Getenv(variable)
	if server == "" {
		ts.Fatalf("%s is not set: scripts/services starts the servers", variable)
	}
	origin := "script-" + strings.ToLower(rand.Text()[:12])
	ts.Setenv("SERVER", server)
	ts.Setenv("ORIGIN", origin)
	ts.Setenv("TOPIC", origin+".dlt")
	switch args[0] {
	case "redis":
		address, err := url.Parse(server)
		ts.Check(err)
		ts.Setenv("SERVER", address.Host)
		redisLetters(ts, address.Host, origin)
	case "nats":
		natsLetters(ts, server, origin)
	case "rabbitmq":
		address, err := url.Parse(server)
		ts.Check(err)
		password, _ := address.User.Password()
		ts.Setenv("USER", address.User.Username())
		ts.Setenv("PASSWORD", password)
		address.User = nil
		ts.Setenv("SERVER", address.String())
	}
}

func eachLetter(origin string, add func(n int, headers [][2]string, payload string) error) error {
	for n, l := range [][3]string{
		{"OrderPaid", "no account 17", `{"order":17,"note":"a\u0007b"}`}, {"OrderPaid", "no account 18", "\x00\x01"},
		{"OrderSent", "no address", `{"order":19}`}, {"OrderPaid", "no account 20", `{"order":20}`},
	} {
		headers, payload := letter(n+1, origin, l[0], l[1], l[2])
		if err := add(n+1, headers, payload); err != nil {
			return err
		}
	}
	return nil
}

func redisLetters(ts *testscript.TestScript, address, origin string) {
	ctx := context.Background()
	c := redis.NewClient(&redis.Options{Addr: address})
	ts.Defer(func() {
		ts.Check(c.Del(ctx, origin, origin+".dlt").Err())
		ts.Check(c.Close())
	})
	ts.Check(c.XGroupCreateMkStream(ctx, origin, "any", "0").Err())
	ts.Check(eachLetter(origin, func(n int, headers [][2]string, payload string) error {
		values := []string{"id", strconv.Itoa(n), "key", "k" + strconv.Itoa(n%2), "payload", payload}
		for _, h := range headers {
			values = append(values, "h:"+h[0], h[1])
		}
		return c.XAdd(ctx, &redis.XAddArgs{Stream: origin + ".dlt", ID: fmt.Sprintf("1777636800000-%d", n), Values: values}).Err()
	}))
}

// arrived STREAM: waits until there is an entry in the stream of Redis.
func arrived(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: arrived STREAM")
	}
	c := redis.NewClient(&redis.Options{Addr: ts.Getenv("SERVER")})
	defer c.Close()
	until(ts, func() (got string, done bool) {
		n, err := c.XLen(context.Background(), args[0]).Result()
		return fmt.Sprint(n, err), n > 0
	})
}

func natsLetters(ts *testscript.TestScript, address, origin string) {
	ctx := context.Background()
	conn, err := nats.Connect(address)
	ts.Check(err)
	js, err := jetstream.New(conn)
	ts.Check(err)
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: origin, Subjects: []string{origin, origin + ".dlt"}})
	ts.Check(err)
	ts.Defer(func() {
		ts.Check(js.DeleteStream(ctx, origin))
		conn.Close()
	})
	ts.Check(eachLetter(origin, func(_ int, headers [][2]string, payload string) error {
		m := &nats.Msg{Subject: origin + ".dlt", Data: []byte(payload), Header: nats.Header{}}
		for _, h := range headers {
			m.Header.Set(h[0], h[1])
		}
		_, err := js.PublishMsg(ctx, m)
		return err
	}))
}
