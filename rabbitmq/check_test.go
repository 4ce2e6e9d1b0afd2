package rabbitmq

import (
	"strings"
	"testing"

	"github.com/postrider/postrider/operator"
)

func wantFinding(t *testing.T, findings []operator.Finding, level operator.Level, words string) {
	t.Helper()
	for _, f := range findings {
		if f.Level == level && strings.Contains(f.Subject+" "+f.Message, words) {
			if f.Hint == "" && level != operator.LevelOK {
				t.Errorf("finding %q has no hint", f.Message)
			}
			return
		}
	}
	t.Errorf("Check found %+v, want %s: %s", findings, level, words)
}

func TestCheck(t *testing.T) {
	perVersion(t, func(t *testing.T, address string) {
		b := newBroker(t, address)
		exchange, q := b.newExchange(t), b.newQueue(t, classic)
		sink := open(t, Config{Servers: []string{address}})
		findings := sink.Check(testContext(t), []string{exchange, exchange + "/key", "/" + q.name, "missing", "/missing", "/"})
		wantFinding(t, findings, operator.LevelOK, "connected to RabbitMQ "+b.conn.Properties["version"].(string))
		wantFinding(t, findings, operator.LevelOK, "topic "+exchange+" exchange "+exchange+" exists")
		wantFinding(t, findings, operator.LevelOK, "topic "+exchange+"/key exchange")
		wantFinding(t, findings, operator.LevelOK, "queue "+q.name+" exists")
		wantFinding(t, findings, operator.LevelError, "topic missing asking for exchange missing")
		wantFinding(t, findings, operator.LevelError, "topic /missing asking for queue missing")
		wantFinding(t, findings, operator.LevelError, "topic / topic \"/\" names no exchange")
	})
}

// TestDeclare declares a new exchange and one that exists in another kind, which goes on to work.
func TestDeclare(t *testing.T) {
	perVersion(t, func(t *testing.T, address string) {
		b := newBroker(t, address)
		other, name := b.newExchange(t), newName()
		sink := open(t, Config{Servers: []string{address}, Declare: []Exchange{{other, "fanout"}, {name, "topic"}}})
		t.Cleanup(func() { b.channel(t).ExchangeDelete(name, false, false) })
		findings := sink.Check(testContext(t), []string{other, name})
		wantFinding(t, findings, operator.LevelError, "exchange "+other+" declaring it")
		wantFinding(t, findings, operator.LevelOK, "topic "+other)
		wantFinding(t, findings, operator.LevelOK, "topic "+name)
	})
}

func TestCheckWithoutServer(t *testing.T) {
	sink := open(t, Config{Servers: []string{"amqp://127.0.0.1:1"}})
	findings := sink.Check(testContext(t), []string{"orders"})
	if len(findings) != 1 {
		t.Errorf("Check found %+v, want one finding", findings)
	}
	wantFinding(t, findings, operator.LevelError, "refused")
}
