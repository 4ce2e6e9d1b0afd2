package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/postrider/postrider/operator"
)

// Check connects to the host, without sending a request, and looks at what the topics need. It returns within about ten
// seconds when the host does not answer.
func (s *Sink) Check(ctx context.Context, topics []string) []operator.Finding {
	about := "webhook host " + s.url.Host
	ctx, cancel := context.WithTimeout(ctx, 2*connectTimeout)
	defer cancel()
	var findings []operator.Finding
	switch err := s.connect(ctx); {
	case s.gone.Load():
		findings = append(findings, operator.Problem(about, "has answered 410 Gone",
			"correct the URL, or restart the relay when the host takes events again"))
	case err != nil:
		findings = append(findings, operator.Problem(about, err.Error(),
			"start the receiver, or correct the URL, the certificates or whether private addresses are allowed"))
	default:
		findings = append(findings, operator.OK(about, "can be connected to; whether it takes events shows with the first one"))
	}
	if s.url.Scheme == "http" {
		findings = append(findings, operator.Warning(about, "is reached without TLS: events and the URL can be read on the way",
			"use https"))
	}
	if len(s.secrets) == 0 {
		findings = append(findings, operator.Warning(about, "gets requests that are not signed: it cannot tell them from forged ones",
			"set a secret"))
	}
	for _, topic := range topics {
		if err := checkTopic(topic); err != nil {
			findings = append(findings, operator.Problem("topic "+topic, err.Error(), "correct the topic of the route"))
		}
	}
	return findings
}

// connect opens a connection as publishing does, and closes it.
func (s *Sink) connect(ctx context.Context) error {
	port := s.url.Port()
	if port == "" {
		port = s.url.Scheme // the names of the services
	}
	conn, err := s.dialer.DialContext(ctx, "tcp", net.JoinHostPort(s.url.Hostname(), port))
	if err != nil {
		return err
	}
	defer conn.Close()
	if s.url.Scheme == "http" {
		return nil
	}
	settings := s.TLS.Clone()
	if settings == nil {
		settings = new(tls.Config)
	}
	if settings.ServerName == "" {
		settings.ServerName = s.url.Hostname()
	}
	if err := tls.Client(conn, settings).HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	return nil
}
