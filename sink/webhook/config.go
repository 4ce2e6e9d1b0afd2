package webhook

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Config says where events go. Only URL is required.
type Config struct {
	// URL takes the events, such as https://hooks.example.com/T0/secret. It is a secret as a whole; only its host shows
	// in reasons. A user and password in it log in by HTTP Basic.
	URL string

	// Secrets sign the requests: each is whsec_ and the base64 of 24 to 64 bytes. To rotate, put the new one beside the
	// old one, and take the old one out when the receiver knows the new one. Without any, requests are not signed.
	Secrets []string

	// TLS changes how https connects: authorities, a client certificate. Nil means the system's authorities.
	TLS *tls.Config

	// Concurrency is how many requests may be under way to the host at once, from all calls of Publish together. It must
	// be between 1 and 1024; 0 means 16.
	Concurrency int

	// Timeout bounds each request, from connecting to the end of the answer. It should not exceed the relay's
	// PublishTimeout. It must be at least a millisecond; 0 means 10 seconds.
	Timeout time.Duration

	// AllowPrivate lets the sink connect to addresses that are not public: loopback, private, link-local (with the
	// metadata services of clouds) and other reserved ones.
	AllowPrivate bool
}

const (
	defaultConcurrency = 16
	maxConcurrency     = 1024
	defaultTimeout     = 10 * time.Second

	secretPrefix   = "whsec_"
	shortestSecret = 24
	longestSecret  = 64
)

// settings are a valid Config with its texts taken apart.
type settings struct {
	Config
	url     *url.URL
	secrets [][]byte
}

// resolve fills what was left empty and reports every mistake together. No message shows a URL or a secret.
func (c Config) resolve() (settings, error) {
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	s := settings{Config: c}
	var mistakes []error
	var err error
	if s.url, err = parseURL(c.URL); err != nil {
		mistakes = append(mistakes, err)
	}
	for i, text := range c.Secrets {
		secret, err := parseSecret(text)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("secret %d %w", i+1, err))
		}
		s.secrets = append(s.secrets, secret)
	}
	if c.Concurrency < 1 || c.Concurrency > maxConcurrency {
		mistakes = append(mistakes, fmt.Errorf("concurrency of %d: it must be between 1 and %d", c.Concurrency, maxConcurrency))
	}
	if c.Timeout < time.Millisecond {
		mistakes = append(mistakes, fmt.Errorf("time-out of %v: it must be at least 1ms", c.Timeout))
	}
	return s, errors.Join(mistakes...)
}

func parseURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("no URL: name where the events go, such as https://hooks.example.com/orders")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil: // it shows the URL
		return nil, errors.New("the URL does not parse")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the URL must begin with https:// or http://")
	case u.Hostname() == "":
		return nil, errors.New("the URL names no host")
	case u.Fragment != "":
		return nil, errors.New("the URL has a fragment (#), which is never sent: leave it out")
	}
	return u, nil
}

func parseSecret(text string) ([]byte, error) {
	encoded, found := strings.CutPrefix(text, secretPrefix)
	if !found {
		return nil, fmt.Errorf("does not begin with %s", secretPrefix)
	}
	secret, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case err != nil: // it can show a part of the secret
		return nil, fmt.Errorf("is not base64 after %s", secretPrefix)
	case len(secret) < shortestSecret || len(secret) > longestSecret:
		return nil, fmt.Errorf("has %d bytes: it must have %d to %d", len(secret), shortestSecret, longestSecret)
	}
	return secret, nil
}
