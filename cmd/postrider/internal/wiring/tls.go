package wiring

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
)

// tlsConfig returns nil for plain connections.
func tlsConfig(c *config.TLS) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	t := &tls.Config{
		ServerName:         c.ServerName,
		InsecureSkipVerify: c.InsecureSkipVerify, //nolint:gosec // the configuration asks for it
		MinVersion:         tls.VersionTLS12,
	}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.ca: %s holds no certificate in PEM form", c.CA)
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("tls.cert and tls.key: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}
