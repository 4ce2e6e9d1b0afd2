package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// Check looks at what publishing to the topics needs, as far as the protocol tells: the connection and login, and for
// each topic its exchange or queue. Whether the login may write to it, whether a queue is bound for a routing key, and
// whether the server is short of memory or disk show only when something is published. It returns within about ten
// seconds for each server, and five for each topic, that does not answer.
func (s *Sink) Check(ctx context.Context, topics []string) []operator.Finding {
	session, err := s.line.connect(ctx)
	if err != nil {
		return []operator.Finding{operator.Problem("rabbitmq server", err.Error(), hintFor(err))}
	}
	findings := []operator.Finding{session.finding()}
	for _, e := range s.config.Declare {
		if err := session.declared[e.Name]; err != nil {
			findings = append(findings, operator.Problem("exchange "+e.Name, "declaring it: "+err.Error(), "correct its kind, or let this login configure it"))
		}
	}
	for _, topic := range topics {
		findings = append(findings, session.checkTopic(topic))
	}
	return findings
}

// finding tells what the sink is connected to.
func (s *session) finding() operator.Finding {
	const about = "rabbitmq server"
	if err := s.state(); err != nil {
		return operator.Problem(about, err.Error(), "free memory or disk of the server, or raise its limits")
	}
	message := fmt.Sprintf("connected to %v %v at %s", s.conn.Properties["product"], s.conn.Properties["version"], s.conn.RemoteAddr())
	return operator.OK(about, message)
}

func hintFor(err error) string {
	var refusal *amqp.Error
	var network net.Error
	switch {
	case errors.As(err, &refusal) && refusal.Code == amqp.AccessRefused:
		return "correct the user or the password"
	case errors.As(err, &refusal) && refusal.Code == amqp.NotAllowed:
		return "correct the virtual host, or let this login use it"
	case errors.As(err, &network):
		return "start the server, or correct the addresses"
	default:
		return "correct the addresses, TLS or the login"
	}
}

func (s *session) checkTopic(topic string) operator.Finding {
	about := "topic " + topic
	t, err := targetOf(relay.Message{Topic: topic, Headers: []relay.Header{{Name: relay.HeaderEventType, Value: "any"}}})
	if err != nil {
		return operator.Problem(about, err.Error(), "correct the topic of the route")
	}
	if t.exchange == "" {
		return s.checkQueue(about, t.key)
	}
	err = s.ask(func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(t.exchange, amqp.ExchangeTopic, true, false, false, false, nil)
	})
	if err != nil {
		return operator.Problem(about, fmt.Sprintf("asking for exchange %s: %v", t.exchange, err), "create the exchange, or have the sink declare it")
	}
	return operator.OK(about, "exchange "+t.exchange+" exists")
}

func (s *session) checkQueue(about, name string) operator.Finding {
	err := s.ask(func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	})
	if err != nil {
		return operator.Problem(about, fmt.Sprintf("asking for queue %s: %v", name, err), "create the queue")
	}
	return operator.OK(about, "queue "+name+" exists")
}
