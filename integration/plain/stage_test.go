// Package plain tests the consumers in other languages under examples, against real servers.
package plain

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/relay"
)

const (
	examples = "../../examples/"
	patience = 2 * time.Minute
	events   = 2000
	wallets  = 50
)

// stage is a consumer's database and the command that runs it.
type stage struct {
	db      *sql.DB
	command func() *exec.Cmd
	waiting func(t *testing.T) int // finds a session whose effect has been waiting for a lock for a while, or 0
	endIt   string                 // ends that session: %d
	sink    relay.Sink
	topic   string
}

// fetch returns the folder of the packages that an example uses.
func fetch(t *testing.T, example string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), examples+example+"/fetch.sh")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, stderr.String())
	}
	return strings.TrimSpace(string(output))
}

// schema executes the statements of an example's schema.sql.
func schema(t *testing.T, db *sql.DB, example string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(examples, example, "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for statement := range strings.SplitSeq(string(text), ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// process is a consumer that runs.
type process struct {
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan error
}

func (s *stage) start(t *testing.T) *process {
	t.Helper()
	p := &process{cmd: s.command(), ended: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		p.ended <- p.cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails when it has ended
		<-done
		if t.Failed() {
			t.Logf("%s:\n%s", p.cmd, p.output.String())
		}
	})
	return p
}

func (p *process) end(t *testing.T, s os.Signal) error {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("%s has ended by itself: %v", p.cmd, err)
	}
	select {
	case err := <-p.ended:
		return err
	case <-time.After(patience):
		t.Fatalf("%s does not end within %v of signal %v", p.cmd, patience, s)
		return nil
	}
}

// message returns the message of event n, which credits a wallet with n.
func (s *stage) message(n int) relay.Message {
	wallet := fmt.Sprintf("w-%d", n%wallets)
	id := fmt.Sprintf("0192f0c1-9a3b-7c4d-8e5f-%012x", n)
	return relay.Message{
		EventID: id, Key: wallet, Topic: s.topic,
		Headers: []relay.Header{{Name: "X-Event-Id", Value: id}, {Name: "X-Event-Type", Value: "WalletCredited"}},
		Payload: fmt.Appendf(nil, `{"wallet": %q, "amount": %d}`, wallet, n),
	}
}

func (s *stage) publish(t *testing.T, batch []relay.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i, o := range s.sink.Publish(ctx, batch) {
		if o.Class != relay.ClassPublished {
			t.Fatalf("message %d is %s: %v", i, o.Class, o.Err)
		}
	}
}

// batch returns every event at least once: every third a second time under another key, which may be another partition and
// another consumer, and every fifth a third time at the end.
func (s *stage) batch() (all []relay.Message) {
	var late []relay.Message
	for n := range events {
		m := s.message(n)
		all = append(all, m)
		if n%3 == 0 {
			m.Key = fmt.Sprint("elsewhere-", n)
			all = append(all, m)
		}
		if n%5 == 0 {
			late = append(late, m)
		}
	}
	return append(all, late...)
}

// bad returns messages that can never be applied, one of each kind.
func (s *stage) bad() []relay.Message {
	headers := func(id, eventType string) []relay.Header {
		return []relay.Header{{Name: "X-Event-Id", Value: id}, {Name: "X-Event-Type", Value: eventType}}
	}
	const payload = `{"wallet": "w-0", "amount": 1}`
	var all []relay.Message
	add := func(h []relay.Header, payload string) {
		all = append(all, relay.Message{EventID: rand.Text(), Key: "bad", Topic: s.topic, Headers: h, Payload: []byte(payload)})
	}
	add(headers("b", "WalletCredited")[1:], payload)
	add(headers("b\n", "WalletCredited"), payload)
	add(headers("b1", "WalletRenamed"), payload)
	add(headers("b2", "WalletCredited"), `{"wallet": `)
	add(headers("b3", "WalletCredited"), `{"wallet": 7, "amount": 1}`)
	add(headers("b4", "WalletCredited"), `{"wallet": "w-0", "amount": 1.5}`)
	add(headers("b5", "WalletCredited"), `[`+strings.Repeat(`[`, 100_000))
	return all
}

// number returns what a query counts.
func (s *stage) number(t *testing.T, query string) (n int) {
	t.Helper()
	return number(t, s.db, query)
}

func number(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

const (
	receipts = "SELECT count(*) FROM inbox_receipts"
	handled  = "SELECT count(*) + coalesce(sum(duplicates), 0) FROM inbox_receipts"
)

// consumes publishes, kills a consumer in the middle of an effect, and wants exactly one effect for each event. deadLetters
// counts the dead letters so far.
func (s *stage) consumes(t *testing.T, deadLetters func() int) {
	batch, bad := s.batch(), s.bad()
	middle := len(batch) / 2
	s.publish(t, append(append(append([]relay.Message{}, batch[:middle]...), bad...), batch[middle:]...))

	s.killInEffect(t)
	processes := []*process{s.start(t), s.start(t)}
	await.True(t, patience, "every message is handled", func() bool { return s.number(t, handled) >= len(batch) })
	await.True(t, patience, "every bad message is a dead letter", func() bool { return deadLetters() >= len(bad) })
	for _, p := range processes {
		if err := p.end(t, syscall.SIGTERM); err != nil {
			t.Errorf("an orderly stop ends with %v", err)
		}
	}

	if n := s.number(t, receipts); n != events {
		t.Errorf("%d receipts, want %d", n, events)
	}
	for w := range wallets {
		want := 0
		for n := w; n < events; n += wallets {
			want += n
		}
		if got := s.number(t, fmt.Sprintf("SELECT amount FROM balances WHERE wallet = 'w-%d'", w)); got != want {
			t.Errorf("wallet w-%d has %d, want %d", w, got, want)
		}
	}
	t.Logf("%d messages of %d events, %d duplicates absorbed", len(batch), events, s.number(t, handled)-events)
}

// killInEffect lets a consumer wait in the effect of a message, behind its receipt, and kills it there.
func (s *stage) killInEffect(t *testing.T) {
	t.Helper()
	victim := s.start(t)
	await.True(t, patience, "a quarter of the events is applied", func() bool { return s.number(t, receipts) > events/4 })
	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() // the lock goes
	if _, err := tx.ExecContext(t.Context(), "SELECT amount FROM balances WHERE wallet = 'w-1' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	session := 0
	await.True(t, patience, "the victim waits in an effect", func() bool {
		session = s.waiting(t)
		return session > 0
	})
	if err := victim.end(t, syscall.SIGKILL); err == nil {
		t.Fatal("the victim was not killed")
	}
	// The database would carry out the statement before it sees that nobody is there any more.
	if _, err := s.db.ExecContext(t.Context(), fmt.Sprintf(s.endIt, session)); err != nil {
		t.Fatal(err)
	}
	await.True(t, patience, "the session of the victim has ended", func() bool { return s.waiting(t) == 0 })
}
