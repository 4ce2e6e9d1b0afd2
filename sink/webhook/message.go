package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider/relay"
)

// Names of the headers that the sink adds. Those of Standard Webhooks are written in lower case there.
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
	headerTopic     = "X-Topic"
	headerUserAgent = "User-Agent"

	ownPrefix = "webhook-"
	userAgent = "postrider"
)

// notForEvents are headers that belong to the connection, the login or the sink, in canonical form. Some would change
// where a request ends, others would be dropped without a word.
var notForEvents = map[string]bool{
	"Authorization": true, "Connection": true, "Content-Length": true, "Expect": true, "Host": true, "Keep-Alive": true,
	"Proxy-Authenticate": true, "Proxy-Authorization": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, headerTopic: true,
}

// encode returns the headers of a request for the message, or says why HTTP cannot carry it. Names keep their spelling.
func (s *Sink) encode(m relay.Message, now time.Time) (http.Header, error) {
	header := make(http.Header, len(m.Headers)+6)
	header[headerUserAgent] = []string{userAgent}
	for _, h := range m.Headers {
		if err := checkHeader(h); err != nil {
			return nil, fmt.Errorf("header %q: %w", h.Name, err)
		}
		switch {
		case strings.EqualFold(h.Name, headerUserAgent):
			header[headerUserAgent] = []string{h.Value}
		case strings.EqualFold(h.Name, relay.HeaderIdempotencyKey): // set below, also when the event has its own
		default:
			header[h.Name] = []string{h.Value}
		}
	}
	if err := checkID(m.EventID); err != nil {
		return nil, fmt.Errorf("event id %q: %w", m.EventID, err)
	}
	header[headerID] = []string{m.EventID}
	header[relay.HeaderIdempotencyKey] = []string{m.EventID}
	if err := checkTopic(m.Topic); err != nil {
		return nil, err
	}
	header[headerTopic] = []string{m.Topic}
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header[headerTimestamp] = []string{timestamp}
	if len(s.secrets) > 0 {
		header[headerSignature] = []string{sign(s.secrets, m.EventID, timestamp, m.Payload)}
	}
	return header, nil
}

// sign returns one signature for each secret, so that a receiver finds the one of the secret that it has.
func sign(secrets [][]byte, id, timestamp string, payload []byte) string {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + timestamp + ".")) // a hash never returns an error
		mac.Write(payload)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}

// checkID refuses full stops because they separate what is signed: with one in the id, a signature would fit another
// request as well.
func checkID(id string) error {
	switch {
	case id == "":
		return errors.New("a webhook needs one")
	case strings.Contains(id, "."):
		return errors.New("a webhook cannot carry one with a full stop")
	}
	return checkValue(id)
}

func checkTopic(topic string) error {
	if err := checkValue(topic); err != nil {
		return fmt.Errorf("topic %q: %w", topic, err)
	}
	return nil
}

func checkHeader(h relay.Header) error {
	switch {
	case !validName(h.Name):
		return errors.New("HTTP cannot carry that name")
	case notForEvents[http.CanonicalHeaderKey(h.Name)],
		len(h.Name) >= len(ownPrefix) && strings.EqualFold(h.Name[:len(ownPrefix)], ownPrefix):
		return errors.New("the name is reserved, an event cannot set it")
	}
	return checkValue(h.Value)
}

// validName allows the token characters of HTTP.
func validName(name string) bool {
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}

func checkValue(value string) error {
	for _, c := range []byte(value) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return errors.New("HTTP cannot carry a line break or another control character in a value")
		}
	}
	if strings.Trim(value, " \t") != value {
		return errors.New("HTTP cannot carry white space at the ends of a value")
	}
	return nil
}
