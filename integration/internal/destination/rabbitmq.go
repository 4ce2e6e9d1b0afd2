package destination

import (
	"fmt"
	"os/exec"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/rabbitmq"
	"github.com/postrider/postrider/sinktest"
)

// newRabbitMQ is a server of its own. What it answers are messages that it returns, because their exchange has no queue.
func newRabbitMQ(t testing.TB) Destination {
	t.Helper()
	server := servers.Launch(t, "rabbitmq")
	run := func(t testing.TB, code string) {
		output, err := exec.CommandContext(t.Context(), server.File("ctl"), "eval", code).CombinedOutput()
		if err != nil {
			t.Fatalf("rabbitmqctl eval: %v\n%s", err, output)
		}
	}
	run(t, fmt.Sprintf(`rabbit_auth_backend_internal:add_user(<<"%[1]s">>, <<"%[2]s">>, <<"test">>),
		rabbit_auth_backend_internal:set_permissions(<<"%[1]s">>, <<"/">>, <<".*">>, <<".*">>, <<".*">>, <<"test">>).`, user, password))
	conn, err := amqp.Dial("amqp://" + loopback(server.Port()))
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	channel, err := conn.Channel()
	must(t, err)
	name := newName()
	must(t, channel.ExchangeDeclare(name, "fanout", true, false, false, false, nil))
	_, err = channel.QueueDeclare(name, true, false, false, false, nil)
	must(t, err)
	bind := func(t testing.TB) { must(t, channel.QueueBind(name, "", name, false, nil)) }
	bind(t)
	proxy := sinktest.NewProxy(t, loopback(server.Port()))
	return Destination{
		Name:  "rabbitmq",
		Topic: name,
		Sink:  opened[*rabbitmq.Sink](t)(rabbitmq.Open(rabbitmq.Config{Servers: []string{"amqp://" + proxy.Addr}, User: user, Password: password})),
		Troubles: append(network(proxy),
			Trouble{
				Name:   "answers errors",
				Begin:  func(t testing.TB) { must(t, channel.QueueUnbind(name, "", name, nil)) },
				End:    bind,
				Spends: true,
			},
			refused(proxy, func(t testing.TB, secret string) {
				run(t, fmt.Sprintf(`rabbit_auth_backend_internal:change_password(<<"%s">>, <<"%s">>, <<"test">>).`, user, secret))
			})),
		Arrived: func(t testing.TB) []string { return readQueue(t, channel, name) },
	}
}

func readQueue(t testing.TB, channel *amqp.Channel, name string) (payloads []string) {
	t.Helper()
	queue, err := channel.QueueDeclarePassive(name, true, false, false, false, nil)
	must(t, err)
	deliveries, err := channel.Consume(name, "", true, true, false, false, nil)
	must(t, err)
	for len(payloads) < queue.Messages {
		d, ok := <-deliveries
		if !ok {
			t.Fatalf("queue %s ended after %d messages of %d", name, len(payloads), queue.Messages)
		}
		payloads = append(payloads, string(d.Body))
	}
	return payloads
}
