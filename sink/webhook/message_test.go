package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/relay"
)

const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret = "whsec_bmV3IHNlY3JldCB3aXRoIDMwIGJ5dGVzIGluIGl0"
)

// TestSignature has the example of the specification's own libraries.
func TestSignature(t *testing.T) {
	secret, err := parseSecret(oldSecret)
	if err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := sign([][]byte{secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)); got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

// TestReceiverVerifies has receivers that know only one of the secrets while they are rotated.
func TestReceiverVerifies(t *testing.T) {
	for name, secret := range map[string]string{"old": oldSecret, "new": newSecret} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if !verifies(r.Header, body, secret) {
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			wantOutcome(t, publishOne(t, open(t, Config{URL: server.URL, Secrets: []string{newSecret, oldSecret}}), message("1")), relay.ClassPublished)
		})
	}
}

// verifies does what a receiver does.
func verifies(header http.Header, body []byte, secret string) bool {
	seconds, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if age := time.Since(time.Unix(seconds, 0)); err != nil || age.Abs() > time.Minute {
		return false
	}
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(header.Get("webhook-id") + "." + header.Get("webhook-timestamp") + "." + string(body)))
	for signature := range strings.SplitSeq(header.Get("webhook-signature"), " ") {
		got, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(signature, "v1,"))
		if hmac.Equal(got, mac.Sum(nil)) {
			return true
		}
	}
	return false
}

func TestHeaders(t *testing.T) {
	var got http.Header
	var method, uri, login string
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got, method, uri = r.Header, r.Method, r.RequestURI
		user, password, _ := r.BasicAuth()
		login = user + "/" + password
	})
	m := message("e1")
	m.Headers = []relay.Header{
		{Name: "X-Event-Id", Value: "e1"},
		{Name: "x-idempotency-key", Value: "the application's own"},
		{Name: "content-type", Value: "application/json"},
		{Name: "user-agent", Value: "shop"},
	}
	address := strings.Replace(server.URL, "http://", "http://user:word@", 1) + "/a%2Fb/c?token=x%20y"
	wantOutcome(t, publishOne(t, open(t, Config{URL: address}), m), relay.ClassPublished)
	if method != "POST" || uri != "/a%2Fb/c?token=x%20y" || login != "user/word" {
		t.Errorf("%s %s by %s", method, uri, login)
	}
	for name, want := range map[string]string{
		"webhook-id": "e1", "X-Idempotency-Key": "e1", "X-Event-Id": "e1", "X-Topic": "orders",
		"Content-Type": "application/json", "User-Agent": "shop",
		"webhook-signature": "", "Accept-Encoding": "",
	} {
		if values := got.Values(name); strings.Join(values, " AND ") != want {
			t.Errorf("%s is %q, want %q", name, values, want)
		}
	}
}

func TestWhatHTTPCannotCarryIsPermanent(t *testing.T) {
	r := newReceiver()
	sink := open(t, Config{URL: serve(t, r.ServeHTTP).URL})
	for _, h := range []relay.Header{
		{Name: "X-Line", Value: "a\r\nX-Other: b"},
		{Name: "X-Line", Value: "a\nb"},
		{Name: "X-Nul", Value: "a\x00b"},
		{Name: "X-Del", Value: "a\x7fb"},
		{Name: "X-Edge", Value: " a"},
		{Name: "X-Edge", Value: "a\t"},
		{Name: "X Space", Value: "a"},
		{Name: "X:Colon", Value: "a"},
		{Name: "X-Ümlaut", Value: "a"},
		{Name: "", Value: "a"},
		{Name: "content-length", Value: "1"},
		{Name: "transfer-encoding", Value: "chunked"},
		{Name: "host", Value: "elsewhere"},
		{Name: "connection", Value: "close"},
		{Name: "te", Value: "trailers"},
		{Name: "authorization", Value: "Bearer x"},
		{Name: "x-topic", Value: "other"},
		{Name: "Webhook-Id", Value: "other"},
	} {
		m := message("1")
		m.Headers = []relay.Header{h}
		wantOutcome(t, publishOne(t, sink, m), relay.ClassPermanent, "header", h.Name)
	}
	for _, id := range []string{"", "a.1614265330", "a\nb", " a"} {
		wantOutcome(t, publishOne(t, sink, message(id)), relay.ClassPermanent, "event id")
	}
	for _, topic := range []string{"a\nb", "a "} {
		m := message("1")
		m.Topic = topic
		wantOutcome(t, publishOne(t, sink, m), relay.ClassPermanent, "topic")
	}
	if stored := r.ids(); stored != "" {
		t.Errorf("%q were stored", stored)
	}
	m := message("1")
	m.Headers = []relay.Header{{Name: "X-Tab", Value: "a\tb"}, {Name: "X-Bytes", Value: "\xff"}, {Name: "x!#$%&'*+-.^_`|~9", Value: ""}}
	wantOutcome(t, publishOne(t, sink, m), relay.ClassPublished)
}
