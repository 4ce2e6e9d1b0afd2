package webhook

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

func TestStatuses(t *testing.T) {
	for _, test := range []struct {
		status int
		header map[string]string
		class  relay.Class
		after  time.Duration
		words  string
	}{
		{200, nil, relay.ClassPublished, 0, ""},
		{201, nil, relay.ClassPublished, 0, ""},
		{202, nil, relay.ClassPublished, 0, ""},
		{204, nil, relay.ClassPublished, 0, ""},
		{299, nil, relay.ClassPublished, 0, ""},
		{300, nil, relay.ClassPermanent, 0, "not followed"},
		{304, nil, relay.ClassPermanent, 0, "not followed"},
		{400, nil, relay.ClassPermanent, 0, "400 Bad Request"},
		{401, nil, relay.ClassUnavailable, 0, "401 Unauthorized"},
		{403, nil, relay.ClassPermanent, 0, "403 Forbidden"},
		{404, nil, relay.ClassPermanent, 0, "404 Not Found"},
		{408, nil, relay.ClassRetry, 0, "408 Request Timeout"},
		{413, nil, relay.ClassPermanent, 0, "413"},
		{422, nil, relay.ClassPermanent, 0, "422"},
		{429, nil, relay.ClassRetry, 5 * time.Second, "429 Too Many Requests"},
		{429, map[string]string{"Retry-After": "7"}, relay.ClassRetry, 7 * time.Second, "429"},
		{429, map[string]string{"Retry-After": "86400"}, relay.ClassRetry, time.Hour, "429"},
		{499, nil, relay.ClassPermanent, 0, "499"},
		{500, nil, relay.ClassRetry, 0, "500 Internal Server Error"},
		{500, map[string]string{"Retry-After": "7"}, relay.ClassRetry, 0, "500"},
		{502, nil, relay.ClassRetry, 0, "502"},
		{503, nil, relay.ClassRetry, 0, "503"},
		{503, map[string]string{"Retry-After": "soon"}, relay.ClassRetry, 0, "503"},
		{503, map[string]string{"Retry-After": "0"}, relay.ClassRetry, time.Second, "503"},
		{599, nil, relay.ClassRetry, 0, "599"},
	} {
		t.Run(fmt.Sprint(test.status, test.header), func(t *testing.T) {
			o := publishOne(t, open(t, Config{URL: serve(t, answering(test.status, test.header, "")).URL}), message("1"))
			if test.class == relay.ClassPublished {
				wantOutcome(t, o, test.class)
				return
			}
			wantOutcome(t, o, test.class, test.words, "topic orders", "127.0.0.1")
			if o.After != test.after {
				t.Errorf("to be sent again after %v, want %v", o.After, test.after)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, test := range []struct {
		value, date string
		wait        time.Duration
		asked       bool
	}{
		{"30", "", 30 * time.Second, true},
		{"0", "", time.Second, true},
		{"3601", "", time.Hour, true},
		{"99999999999999999999999999", "", time.Hour, true},
		{"9223372036854775807", "", time.Hour, true},
		{at(90 * time.Second), "", 90 * time.Second, true},
		{at(-time.Minute), "", time.Second, true},
		{at(24 * time.Hour), "", time.Hour, true},
		{at(90 * time.Second), at(60 * time.Second), 30 * time.Second, true},
		{at(90 * time.Second), "no date", 90 * time.Second, true},
		{"", "", 0, false},
		{"-5", "", 0, false},
		{"1.5", "", 0, false},
		{"soon", "", 0, false},
	} {
		wait, asked := retryAfter(http.Header{"Retry-After": {test.value}, "Date": {test.date}}, now)
		if wait != test.wait || asked != test.asked {
			t.Errorf("%q at %q: %v, %v; want %v, %v", test.value, test.date, wait, asked, test.wait, test.asked)
		}
	}
}

// TestThrottledEventHarmsNoOther has one event that is told to wait.
func TestThrottledEventHarmsNoOther(t *testing.T) {
	r := newReceiver()
	server := serve(t, func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("webhook-id") == "b" {
			answering(429, map[string]string{"Retry-After": "2"}, "")(w, request)
			return
		}
		r.ServeHTTP(w, request)
	})
	next := message("b2")
	next.Key = message("b").Key
	outcomes := open(t, Config{URL: server.URL, Concurrency: 1}).Publish(testContext(t), []relay.Message{message("a"), message("b"), next, message("c")})
	wantOutcome(t, outcomes[0], relay.ClassPublished)
	wantOutcome(t, outcomes[1], relay.ClassRetry, "429")
	wantOutcome(t, outcomes[2], relay.ClassSkipped)
	wantOutcome(t, outcomes[3], relay.ClassPublished)
	if got := r.ids(); got != "a c" || outcomes[1].After != 2*time.Second {
		t.Errorf("stored %q, and to be sent again after %v", got, outcomes[1].After)
	}
}

// TestGoneIsAskedNoMore until the sink is opened again. No event is lost for it.
func TestGoneIsAskedNoMore(t *testing.T) {
	var requests atomic.Int32
	var back atomic.Bool
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		if !back.Load() {
			w.WriteHeader(http.StatusGone)
		}
	})
	sink := open(t, Config{URL: server.URL, Concurrency: 1})
	for range 3 {
		for _, o := range sink.Publish(testContext(t), []relay.Message{message("1"), message("2"), message("3")}) {
			wantOutcome(t, o, relay.ClassUnavailable, "410 Gone", "restart")
		}
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	if findings := sink.Check(testContext(t), nil); findings[0].Level != operator.LevelError || !strings.Contains(findings[0].Message, "410") {
		t.Errorf("Check found %+v", findings)
	}
	back.Store(true)
	wantOutcome(t, publishOne(t, open(t, Config{URL: server.URL}), message("1")), relay.ClassPublished)
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var followed atomic.Int32
	target := serve(t, func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := serve(t, answering(status, map[string]string{"Location": target.URL + "/elsewhere"}, ""))
		o := publishOne(t, open(t, Config{URL: server.URL}), message("1"))
		wantOutcome(t, o, relay.ClassPermanent, fmt.Sprint(status), "redirects are not followed")
		if strings.Contains(o.Err.Error(), "elsewhere") {
			t.Errorf("reason %q shows the target", o.Err)
		}
	}
	if n := followed.Load(); n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

func TestBodyIsQuotedAndCut(t *testing.T) {
	body := "<script>alert('é')</script>\x1b[31m\x00\xff\u202e\r\nlevel=info " + strings.Repeat("ü", 1<<20)
	o := publishOne(t, open(t, Config{URL: serve(t, answering(400, nil, body)).URL}), message("1"))
	wantOutcome(t, o, relay.ClassPermanent, `400 Bad Request: "<script>alert('é')</script>\x1b[31m\x00\xff\u202e\r\nlevel=info üü`, `ü..."`)
	if size := len(o.Err.Error()); size > 500 {
		t.Errorf("reason of %d bytes", size)
	}
}

const (
	secretPath  = "/T0KEN/s3cr3t%2Fpath"
	secretQuery = "key=qu3ry%26value&other=v4lue"
)

// wantNoSecrets wants none of the parts of the URL above in a text.
func wantNoSecrets(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{"T0KEN", "s3cr3t", "qu3ry", "v4lue", "passw0rd", "dXNlcjpwYXNzdzByZA"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q shows %q", text, secret)
		}
	}
}

func secretURL(address string) string {
	return strings.Replace(address, "://", "://user:passw0rd@", 1) + secretPath + "?" + secretQuery
}

func TestRedactor(t *testing.T) {
	u, err := url.Parse("https://hooks.example.com/abcd/abcdefgh?a=b&key=a%26b'c%22d")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"not abcdefgh but abcd":         "not [hidden] but [hidden]",
		"key a&b'c\"d":                  "key [hidden]",
		"key a&amp;b&#39;c&#34;d":       "key [hidden]",
		"https://hooks.example.com, ab": "https://hooks.example.com, ab",
	} {
		if got := newRedactor(u).Replace(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// TestURLIsSecret has receivers that repeat it in every way, and none at all.
func TestURLIsSecret(t *testing.T) {
	repeats := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, "Cannot POST %s or %s or http://%s%s, %s, %s", r.RequestURI, r.URL.Path, r.Host, r.URL, r.URL.Query(), r.Header.Get("Authorization"))
	})
	o := publishOne(t, open(t, Config{URL: secretURL(repeats.URL)}), message("1"))
	wantOutcome(t, o, relay.ClassPermanent, "Cannot POST [hidden]")
	wantNoSecrets(t, o.Err.Error())

	// A server of another protocol sends the request back.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		line, _ := bufio.NewReader(conn).ReadString('\n')
		fmt.Fprint(conn, line)
	}()
	sink := open(t, Config{URL: secretURL("http://" + listener.Addr().String())})
	o = publishOne(t, sink, message("1"))
	wantOutcome(t, o, relay.ClassUnavailable, "malformed HTTP", "[hidden]")
	wantNoSecrets(t, o.Err.Error())

	listener.Close()
	o = publishOne(t, sink, message("1"))
	wantOutcome(t, o, relay.ClassUnavailable, "refused")
	wantNoSecrets(t, o.Err.Error())
	wantNoSecrets(t, fmt.Sprint(sink.Check(testContext(t), []string{"orders"})))
}
