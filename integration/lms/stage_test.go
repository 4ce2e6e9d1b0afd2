package lms_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/integration/internal/daemon"
	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
)

const patience = 2 * time.Minute

// stage is the example's databases and streams. The processes find them in the environment.
type stage struct {
	lessons, progress, rewards testdb.Database
	redis                      *redis.Client
	prefix                     string // of the streams
}

func newStage(t *testing.T) *stage {
	t.Helper()
	options, err := redis.ParseURL(servers.Address(t, "POSTRIDER_TEST_REDIS"))
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{
		lessons: testdb.Postgres(t, "pgx"), progress: testdb.Postgres(t, "pgx"), rewards: testdb.MySQL(t, "POSTRIDER_TEST_MARIADB", nil),
		redis: redis.NewClient(options),
	}
	var name string
	if err := s.rewards.QueryRowContext(t.Context(), "SELECT database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	s.prefix = name + "."
	t.Cleanup(func() { s.clean(t) })
	mariadb, err := url.Parse(servers.Address(t, "POSTRIDER_TEST_MARIADB"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LESSONS_DB", s.lessons.DSN)
	t.Setenv("PROGRESS_DB", s.progress.DSN)
	t.Setenv("REWARDS_DB", mariadb.JoinPath("..", name).String())
	t.Setenv("REDIS", options.Addr)
	t.Setenv("LMS_PREFIX", s.prefix)
	for _, service := range []string{"lessons", "progress", "rewards"} {
		command(t, postrider, "init", "-c", config(service))
	}
	command(t, lms, "init")
	return s
}

func config(service string) string { return "../../examples/lms/" + service + ".yaml" }

func (s *stage) clean(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	if keys := s.redis.Keys(ctx, s.prefix+"*").Val(); len(keys) > 0 {
		s.redis.Del(ctx, keys...)
	}
	s.redis.Close()
}

// command runs a command to its end, which must be a good one.
func command(t *testing.T, binary string, arguments ...string) string {
	t.Helper()
	r := daemon.Run(t, binary, arguments...)
	if r.Code != 0 {
		t.Fatalf("%s %v: exit code %d\n%s%s", binary, arguments, r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// process is a service or a relay that can be killed and started again under its name.
type process struct {
	binary, instance string
	arguments        []string
	command          *exec.Cmd
	output           strings.Builder // of all its lives
	ended            chan error
}

func (s *stage) start(t *testing.T, instance, binary string, arguments ...string) *process {
	t.Helper()
	p := &process{binary: binary, instance: instance, arguments: arguments}
	p.begin(t)
	t.Cleanup(func() {
		_ = p.command.Process.Kill() // fails when it has ended
		<-p.ended
		if t.Failed() {
			t.Logf("%s %s %v:\n%s", binary, instance, arguments, p.output.String())
		}
	})
	return p
}

func (p *process) begin(t *testing.T) {
	t.Helper()
	p.command = exec.Command(p.binary, p.arguments...)
	p.command.Env = append(p.command.Environ(), "LMS_INSTANCE="+p.instance, fmt.Sprintf("LMS_ADMIN=127.0.0.1:%d", servers.FreePort(t)))
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	p.ended = ended
	go func() {
		ended <- p.command.Wait()
		close(ended)
	}()
}

// end ends it by a signal and returns what it ends with.
func (p *process) end(t *testing.T, signal syscall.Signal) error {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		t.Fatalf("%v of %s has ended by itself: %v\n%s", p.arguments, p.instance, err, p.output.String())
	}
	select {
	case err := <-p.ended:
		return err
	case <-time.After(patience):
		t.Fatalf("%v of %s does not end within %v of signal %v", p.arguments, p.instance, patience, signal)
		return nil
	}
}

// kill kills it and starts it again.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.end(t, syscall.SIGKILL); err == nil {
		t.Fatalf("%v of %s ended in good order before it was killed", p.arguments, p.instance)
	}
	p.begin(t)
}

// repeater has each event of a stream delivered twice.
type repeater struct {
	redis  *redis.Client
	stream string
	copies atomic.Int64
	late   []map[string]any // events that are to come once more, much later
}

// run adds a copy of each event behind it, until ctx ends.
func (r *repeater) run(ctx context.Context, t *testing.T) {
	seen, last := make(map[any]bool), "0"
	for ctx.Err() == nil {
		read, err := r.redis.XRead(ctx, &redis.XReadArgs{Streams: []string{r.stream, last}, Block: 100 * time.Millisecond}).Result()
		if err != nil || len(read) == 0 {
			continue // nothing came, or it is over
		}
		for _, entry := range read[0].Messages {
			last = entry.ID
			if id := entry.Values["h:X-Event-Id"]; seen[id] {
				continue
			} else if seen[id] = true; len(seen)%5 == 0 {
				r.late = append(r.late, entry.Values)
			}
			r.add(t, entry.Values)
		}
	}
}

func (r *repeater) add(t *testing.T, values map[string]any) {
	if err := r.redis.XAdd(context.WithoutCancel(t.Context()), &redis.XAddArgs{Stream: r.stream, Values: values}).Err(); err != nil {
		t.Error(err)
	}
	r.copies.Add(1)
}

// awaitHandled waits until the groups of a stream have handled everything that it holds.
func (s *stage) awaitHandled(t *testing.T, stream string, groups int) {
	t.Helper()
	await.True(t, patience, "everything of "+stream+" is handled", func() bool {
		all, err := s.redis.XInfoGroups(t.Context(), s.prefix+stream).Result()
		for _, g := range all {
			if g.Lag != 0 || g.Pending != 0 {
				return false
			}
		}
		return err == nil && len(all) == groups
	})
}

func awaitPublished(t *testing.T, db *sql.DB, n int) {
	t.Helper()
	await.True(t, patience, fmt.Sprintf("%d events are published", n), func() bool {
		return number(t, db, "SELECT count(*) FROM outbox_events WHERE status = 'PUBLISHED'") >= n
	})
}

func number(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
