package config

import (
	"net/url"
	"time"
)

// Webhook is a sink of type webhook.
type Webhook struct {
	// URL takes the events. All of it is a secret.
	URL Secret
	// Secrets sign the requests; none means unsigned.
	Secrets []Secret
	// TLS is nil unless the file asks for more than the URL does.
	TLS *TLS
	// Concurrency bounds the requests at once, 1 to 1024. The default is 16.
	Concurrency int
	// Timeout bounds one request. The default is 10s.
	Timeout time.Duration
	// AllowPrivate lets connections go to addresses that are not public.
	AllowPrivate bool
}

func readWebhook(o *object) *Webhook {
	webhook := &Webhook{Concurrency: 16, Timeout: 10 * time.Second}
	o.require("url", "write url: ${WEBHOOK_URL}")
	if str(o, "url", &webhook.URL) {
		if u, err := url.Parse(webhook.URL.Reveal()); err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
			o.problem("url", "is no address of a web server", "write https://host/path, with special characters as %XX")
		}
	}
	var secrets []string
	strs(o, "secrets", &secrets)
	for _, secret := range secrets {
		webhook.Secrets = append(webhook.Secrets, Secret(secret))
	}
	webhook.TLS = readTLS(o.field("tls"))
	integer(o, "concurrency", &webhook.Concurrency, 1, 1024)
	duration(o, "timeout", &webhook.Timeout, time.Millisecond)
	boolean(o, "allow_private", &webhook.AllowPrivate)
	return webhook
}
