package kafka

import (
	"testing"

	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/dlt/dlttest"
)

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	dlttest.Run(t, func(t testing.TB) dlttest.Broker {
		sink, err := Open(Config{Brokers: brokers(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sink.Close() })
		return dlttest.Broker{
			Sink:   sink,
			Origin: newTopic(t, 2), Letter: newTopic(t, 2), None: "none", Key: true,
			Open: func(t testing.TB, topic string) dlt.Topic {
				d, err := OpenDeadLetters(Config{Brokers: brokers(t)}, topic)
				if err != nil {
					t.Fatal(err)
				}
				return d
			},
		}
	})
}
