package nats

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func TestRetentionIsTheLongest(t *testing.T) {
	address := serverURL(t)
	js := client(t, address)
	subject := func(age time.Duration) string {
		return newStream(t, js, jetstream.StreamConfig{MaxAge: age}).CachedInfo().Config.Name + ".events"
	}
	hour, day, ever := subject(time.Hour), subject(24*time.Hour), subject(0)
	sink := open(t, Config{Servers: []string{address}})
	for _, c := range []struct {
		subjects []string
		want     time.Duration
	}{{[]string{hour}, time.Hour}, {[]string{day, hour}, 24 * time.Hour}, {[]string{hour, ever, day}, 0}} {
		if got, err := sink.Retention(testContext(t), c.subjects); got != c.want || err != nil {
			t.Errorf("%v: %v, %v; want %v", c.subjects, got, err, c.want)
		}
	}
	if got, err := sink.Retention(testContext(t), []string{"missing-" + hour}); err == nil {
		t.Errorf("%v for a subject without a stream", got)
	}
}
