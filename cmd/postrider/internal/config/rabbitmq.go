package config

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// RabbitMQ is a sink of type rabbitmq.
type RabbitMQ struct {
	// Servers has the addresses of one cluster. They hold no login.
	Servers []string
	// User and Password log in; both are empty for the server's guest.
	User     string
	Password Secret
	// TLS is nil unless the file asks for more than the addresses do.
	TLS *TLS
	// Unroutable is what becomes of a message that reaches no queue. The
	// default is retry.
	Unroutable Unroutable
	// UnroutableBy is Unroutable for single exchanges.
	UnroutableBy map[string]Unroutable
	// Declare are exchanges to declare.
	Declare []Exchange
	// MaxMessageBytes is the largest message, 1 KiB to 512 MiB. The default
	// is 16 MiB.
	MaxMessageBytes int
}

// Exchange is an exchange of RabbitMQ.
type Exchange struct{ Name, Kind string }

// Unroutable is what becomes of a message that reaches no queue.
type Unroutable string

// What may become of a message that reaches no queue.
const (
	UnroutableRetry Unroutable = "retry"
	UnroutableDead  Unroutable = "dead"
	UnroutableAllow Unroutable = "allow"
)

func readRabbitMQ(o *object) *RabbitMQ {
	rabbit := &RabbitMQ{Unroutable: UnroutableRetry, MaxMessageBytes: 16 << 20}
	o.require("servers", "write servers: [amqp://host:5672]")
	if strs(o, "servers", &rabbit.Servers) {
		for _, server := range rabbit.Servers {
			scheme, host, found := strings.Cut(server, "://")
			switch {
			case strings.Contains(server, "@"):
				o.problem("servers", "an address holds a login", "give it by user and password")
			case !found || host == "" || scheme != "amqp" && scheme != "amqps":
				o.problem("servers", "an element is no address of a RabbitMQ server", "write amqp://host:5672/vhost, or with amqps://")
			}
		}
	}
	readLogin(o, &rabbit.User, &rabbit.Password)
	rabbit.TLS = readTLS(o.field("tls"))
	choice(o, "unroutable", &rabbit.Unroutable, UnroutableRetry, UnroutableDead, UnroutableAllow)
	rabbit.UnroutableBy = readUnroutableBy(o.field("unroutable_by"))
	o.field("declare").items(func(item value) { rabbit.Declare = append(rabbit.Declare, readExchange(item)) })
	size(o, "max_message_bytes", &rabbit.MaxMessageBytes, 1<<10, 512<<20)
	return rabbit
}

func readLogin(o *object, user *string, password *Secret) {
	str(o, "user", user)
	str(o, "password", password)
	if o.has("user") != o.has("password") {
		o.problem(o.firstOf("user", "password"), "user and password go together", "give both")
	}
}

func readUnroutableBy(v value) map[string]Unroutable {
	if !v.is(yaml.MappingNode) {
		return nil
	}
	by := make(map[string]Unroutable)
	v.pairs(func(key *yaml.Node, field value) {
		u := UnroutableRetry
		choiceOf(field, &u, UnroutableRetry, UnroutableDead, UnroutableAllow)
		by[key.Value] = u
	})
	return by
}

func readExchange(v value) (e Exchange) {
	v.object(func(o *object) {
		o.require("name", "name the exchange")
		str(o, "name", &e.Name)
		o.require("kind", "write direct, fanout, topic or headers")
		str(o, "kind", &e.Kind)
	})
	return e
}
