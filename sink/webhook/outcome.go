package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/postrider/postrider/relay"
)

const (
	shownBody    = 300 // bytes of an answer's body that a reason shows
	shortestWait = time.Second
	longestWait  = time.Hour
	throttleWait = 5 * time.Second // after a 429 that names no time
)

var errGone = errors.New("the receiver has answered 410 Gone, nothing is sent any more: restart the relay " +
	"when it takes events again, or correct the URL or the routes")

// answer is what a receiver said.
type answer struct {
	status int
	header http.Header
	body   string // its beginning
}

// outcomeOf classifies an answer to a message.
func (s *Sink) outcomeOf(m relay.Message, a answer) relay.Outcome {
	if a.status >= 200 && a.status <= 299 {
		return relay.Published(fmt.Sprintf("webhook:%s@%s", s.url.Host, m.EventID))
	}
	reason := s.reason(m, s.describe(a))
	wait, asked := retryAfter(a.header, time.Now())
	switch {
	case a.status == http.StatusTooManyRequests && !asked:
		return relay.Outcome{Class: relay.ClassRetry, After: throttleWait, Err: reason}
	case a.status == http.StatusTooManyRequests, a.status == http.StatusServiceUnavailable && asked:
		return relay.Outcome{Class: relay.ClassRetry, After: wait, Err: reason}
	case a.status == http.StatusRequestTimeout, a.status >= 500:
		return relay.Retry(reason)
	case a.status == http.StatusUnauthorized:
		return relay.Unavailable(reason)
	case a.status == http.StatusGone:
		s.gone.Store(true)
		return relay.Unavailable(fmt.Errorf("%w (%w)", reason, errGone))
	default:
		return relay.Permanent(reason)
	}
}

// reason names the receiver and the topic.
func (s *Sink) reason(m relay.Message, err error) error {
	return fmt.Errorf("webhook %s, topic %s: %w", s.url.Host, m.Topic, err)
}

// describe shows an answer: its status, without the words that the receiver put there, and a part of its body.
func (s *Sink) describe(a answer) error {
	text := "answered " + strconv.Itoa(a.status)
	if name := http.StatusText(a.status); name != "" {
		text += " " + name
	}
	if a.status >= 300 && a.status <= 399 {
		text += ", and redirects are not followed"
	}
	if a.body != "" {
		text += ": " + strconv.Quote(cut(s.redactor.Replace(a.body)))
	}
	return errors.New(text)
}

// cut shortens a text on a rune boundary.
func cut(text string) string {
	if len(text) <= shownBody {
		return text
	}
	end := shownBody
	for end > shownBody-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

// retryAfter returns the wait that an answer asks for, within bounds. A date is compared with the answer's own date, so
// that clocks need not agree.
func retryAfter(header http.Header, now time.Time) (wait time.Duration, asked bool) {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return max(shortestWait, time.Duration(min(seconds, uint64(longestWait/time.Second)))*time.Second), true
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		now = date
	}
	return min(max(shortestWait, until.Sub(now)), longestWait), true
}
