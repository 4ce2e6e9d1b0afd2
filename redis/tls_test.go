package redis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// TestTLS has a server that wants a client certificate.
func TestTLS(t *testing.T) {
	certificate, pool := newCertificate(t), x509.NewCertPool()
	pool.AddCert(certificate.Leaf)
	port := servers.FreePort(t)
	files := writePEM(t, certificate)
	launch(t, "redis", fmt.Sprintf("REDIS_OPTIONS=--tls-port %d --tls-cert-file %s/cert.pem --tls-key-file %s/key.pem --tls-ca-cert-file %s/cert.pem",
		port, files, files, files))
	for name, test := range map[string]struct {
		config *tls.Config
		class  relay.Class
		words  []string
	}{
		"good":              {&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}}, relay.ClassPublished, nil},
		"no certificate":    {&tls.Config{RootCAs: pool}, relay.ClassUnavailable, []string{"redis"}},
		"unknown authority": {&tls.Config{Certificates: []tls.Certificate{certificate}}, relay.ClassUnavailable, []string{"certificate"}},
		"no TLS":            {nil, relay.ClassUnavailable, []string{"redis"}},
	} {
		t.Run(name, func(t *testing.T) {
			sink := open(t, Config{Addresses: []string{fmt.Sprintf("127.0.0.1:%d", port)}, TLS: test.config})
			wantOutcome(t, publishOne(t, sink, relay.Message{EventID: "1", Topic: "events"}), test.class, test.words...)
			level := operator.LevelError
			if test.class == relay.ClassPublished {
				level = operator.LevelOK
			}
			wantFinding(t, sink.Check(testContext(t), nil), level, "redis server")
		})
	}
}

// newCertificate is its own authority, and serves both sides.
func newCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// writePEM returns a folder with a certificate and its key.
func writePEM(t *testing.T, certificate tls.Certificate) string {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}, "key.pem": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
