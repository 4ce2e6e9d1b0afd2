package config

import (
	"slices"
	"strings"
)

// NATS is a sink of type nats: JetStream on other servers, or one in this
// process. Exactly one of Servers and Embedded is set.
type NATS struct {
	// Servers has the URLs of one cluster. They hold no login.
	Servers []string
	// CredentialsFile, User with Password, and Token are three ways to log
	// in; at most one of them is set.
	CredentialsFile string
	User            string
	Password        Secret
	Token           Secret
	// TLS is nil unless the file asks for more than the URLs do.
	TLS *TLS
	// Embedded is a JetStream server inside this process.
	Embedded *EmbeddedNATS
	// Stream is the name of the stream that is expected to take the events;
	// empty takes any. With Embedded it is set.
	Stream string
}

// EmbeddedNATS is a JetStream server inside this process, with one stream.
type EmbeddedNATS struct {
	// Dir is the directory that holds the stream.
	Dir string
	// Subjects is what the stream takes; there is at least one.
	Subjects []string
	// Listen is the host:port, of this machine only, where other processes
	// reach the server; empty for none.
	Listen string
}

func readNATS(o *object) *NATS {
	var nats NATS
	readServers(o, &nats)
	readNATSLogin(o, &nats)
	nats.TLS = readTLS(o.field("tls"))
	if embedded := o.field("embedded"); embedded.present() {
		nats.Embedded = readEmbedded(embedded)
		for _, key := range []string{"url", "servers", "tls", "credentials_file", "user", "password", "token"} {
			o.exclude("embedded", key, "remove one of both")
		}
	}
	str(o, "stream", &nats.Stream)
	if o.has("embedded") {
		o.require("stream", "name the stream that the embedded server keeps")
	}
	return &nats
}

func readServers(o *object, nats *NATS) {
	url, servers := strs(o, "url", &nats.Servers), strs(o, "servers", &nats.Servers)
	o.exclude("url", "servers", "keep one of both")
	if !o.has("url") && !o.has("servers") && !o.has("embedded") {
		o.problem("url", "is missing", "write url: nats://host:4222, servers: [...], or embedded: {dir: DIRECTORY, subjects: [...]}")
	}
	if !url && !servers {
		return
	}
	key := o.firstOf("url", "servers")
	for _, server := range nats.Servers {
		scheme, host, found := strings.Cut(server, "://")
		switch {
		case strings.Contains(server, "@"):
			o.problem(key, "an address holds a login", "give it by user and password, token or credentials_file")
		case !found || host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, scheme):
			o.problem(key, "an element is no address of a NATS server", "write nats://host:4222, or with tls://, ws:// or wss://")
		}
	}
}

func readNATSLogin(o *object, nats *NATS) {
	str(o, "credentials_file", &nats.CredentialsFile)
	str(o, "user", &nats.User)
	str(o, "password", &nats.Password)
	str(o, "token", &nats.Token)
	if o.has("user") != o.has("password") {
		o.problem(o.firstOf("user", "password"), "user and password go together", "give both, or use token")
	}
	o.exclude("credentials_file", "user", "keep one way to log in")
	o.exclude("credentials_file", "token", "keep one way to log in")
	o.exclude("user", "token", "keep one way to log in")
}

func readEmbedded(v value) *EmbeddedNATS {
	var embedded EmbeddedNATS
	v.object(func(o *object) {
		o.require("dir", "name a directory for the stream")
		str(o, "dir", &embedded.Dir)
		o.require("subjects", "name what the stream takes, such as [\"orders.>\"]")
		strs(o, "subjects", &embedded.Subjects)
		if str(o, "listen", &embedded.Listen) {
			host, _, ok := splitHostPort(embedded.Listen)
			switch {
			case !ok:
				o.problem("listen", "is not host:port", "write 127.0.0.1:4222")
			case !isLoopback(host):
				o.problem("listen", "is open to other machines, without any login", "write 127.0.0.1:PORT, or run a NATS server of its own")
			}
		}
	})
	return &embedded
}
