package kafka

import (
	"os"
	"testing"
	"time"

	"github.com/postrider/postrider/sinktest"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestTmp(t *testing.T) {
	sinktest.Run(t, func(t testing.TB) sinktest.Fixture {
		f := newFixture(t, Config{Brokers: brokers(t)})
		f.Sink, _ = open(Config{Brokers: brokers(t)}, throughProxy(f.Proxy), kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelDebug, func() string { return time.Now().Format("05.000 ") })))
		return f
	})
}
