package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/postrider/postrider/relay"
)

func TestConfigReportsEveryMistake(t *testing.T) {
	_, err := Open(Config{MaxMessageBytes: 100, Compression: "brotli", SASL: SASL{Mechanism: "GSSAPI", User: "relay", Password: "hidden"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, words := range []string{"no brokers", "100 bytes", `"brotli"`, `"GSSAPI"`} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("error %q does not mention %q", err, words)
		}
	}
	if strings.Contains(err.Error(), "hidden") {
		t.Errorf("error %q shows the password", err)
	}
	if _, err := Open(Config{Brokers: []string{"localhost"}, SASL: SASL{Mechanism: MechanismPlain}}); err == nil {
		t.Error("no error for a login without a user")
	}
}

// TestTLS has a cluster that wants a client certificate.
func TestTLS(t *testing.T) {
	certificate, pool := certificates(t)
	c := newCluster(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAnyClientCert}))
	batch := []relay.Message{message(orders, "a", "a1")}
	for name, test := range map[string]struct {
		config *tls.Config
		want   relay.Class
	}{
		"good":              {&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}}, relay.ClassPublished},
		"no certificate":    {&tls.Config{RootCAs: pool}, relay.ClassUnavailable},
		"unknown authority": {&tls.Config{Certificates: []tls.Certificate{certificate}}, relay.ClassUnavailable},
		"no TLS":            {nil, relay.ClassUnavailable},
	} {
		sink := openSink(t, Config{Brokers: c.ListenAddrs(), TLS: test.config})
		if o := sink.Publish(testContext(t), batch)[0]; o.Class != test.want {
			t.Errorf("%s: the outcome is %s (%v), want %s", name, o.Class, o.Err, test.want)
		}
	}
}

// certificates returns a certificate for loopback, and who trusts it.
func certificates(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return server.TLS.Certificates[0], pool
}
