package redis

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// hidden is a password that no reason may show.
const hidden = "hidden-password"

// trouble is a state of a server in which an event does not pass.
type trouble struct {
	options string   // of the server
	begin   []string // commands that bring it about
	end     []string // and end it
	user    string   // who publishes; empty is the default one, wrong has another password
	break_  func(t *testing.T, s server, c *redis.Client)
	class   relay.Class
	words   []string // in the reason
	silent  bool     // Check cannot see it
}

var troubles = map[string]trouble{
	"OOM":        {begin: []string{"CONFIG SET maxmemory 1"}, end: []string{"CONFIG SET maxmemory 0"}, class: relay.ClassUnavailable, words: []string{"OOM"}},
	"READONLY":   {begin: []string{"REPLICAOF 127.0.0.1 1"}, end: []string{"REPLICAOF NO ONE"}, class: relay.ClassUnavailable, words: []string{"READONLY"}},
	"NOREPLICAS": {begin: []string{"CONFIG SET min-replicas-to-write 1"}, end: []string{"CONFIG SET min-replicas-to-write 0"}, class: relay.ClassUnavailable, words: []string{"NOREPLICAS"}},
	"MASTERDOWN": {
		begin: []string{"CONFIG SET replica-serve-stale-data no", "CONFIG SET replica-read-only no", "REPLICAOF 127.0.0.1 1"}, end: []string{"REPLICAOF NO ONE"},
		class: relay.ClassUnavailable, words: []string{"MASTERDOWN"},
	},
	"NOAUTH":    {begin: []string{"ACL SETUSER default resetpass >other"}, end: []string{"ACL SETUSER default nopass"}, class: relay.ClassUnavailable, words: []string{"NOAUTH"}},
	"WRONGPASS": {user: "wrong", class: relay.ClassUnavailable, words: []string{"WRONGPASS"}},
	"NOPERM for the key": {
		user: "relay", begin: []string{"ACL SETUSER relay resetkeys ~other"}, end: []string{"ACL SETUSER relay ~*"},
		class: relay.ClassRetry, words: []string{"NOPERM", "stream events"},
	},
	"NOPERM for the command": {
		user: "relay", begin: []string{"ACL SETUSER relay -xadd -evalsha"}, end: []string{"ACL SETUSER relay +xadd +evalsha"},
		class: relay.ClassUnavailable, words: []string{"NOPERM"},
	},
	"WRONGTYPE": {begin: []string{"SET events taken"}, end: []string{"DEL events"}, class: relay.ClassRetry, words: []string{"stream events", "something else"}},
	"last id": {
		begin: []string{"XADD events 18446744073709551615-18446744073709551615 a b"}, end: []string{"DEL events"},
		class: relay.ClassRetry, words: []string{"stream events", "exhausted"}, silent: true,
	},
	"CLUSTERDOWN": {options: "--cluster-enabled yes", class: relay.ClassUnavailable, words: []string{"CLUSTERDOWN"}},
	"MISCONF":     {break_: breakSnapshots, end: []string{"CONFIG SET stop-writes-on-bgsave-error no"}, class: relay.ClassUnavailable, words: []string{"MISCONF"}},
	"BUSY": {
		begin: []string{"CONFIG SET busy-reply-threshold 1"}, break_: keepBusy, end: []string{"SCRIPT KILL"},
		class: relay.ClassUnavailable, words: []string{"BUSY"},
	},
	"LOADING": {
		options: "--enable-debug-command local", break_: keepLoading, class: relay.ClassUnavailable, words: []string{"LOADING"},
	},
}

// TestTroubles has real servers refuse what they are sent, and sends it again when they no longer do.
func TestTroubles(t *testing.T) {
	for name, trouble := range troubles {
		for _, kind := range kinds {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				port := servers.FreePort(t) // the next one is for nodes among themselves: their default is one of those of outgoing connections
				options := fmt.Sprintf("REDIS_OPTIONS=%s --cluster-port %d", trouble.options, port+1)
				trouble.run(t, server{servers.LaunchAt(t, port, kind, options)})
			})
		}
	}
}

func (x trouble) run(t *testing.T, s server) {
	c := client(t, s.address())
	do(t, c, "ACL", "SETUSER", "relay", "on", ">secret", "~*", "+@all")
	admin := client(t, s.address())
	say(t, admin, x.begin)
	if x.break_ != nil {
		x.break_(t, s, c)
	}
	sinks := []*Sink{x.open(t, s, 0), x.open(t, s, time.Minute)}
	m := relay.Message{EventID: "1", Topic: "events"}
	for _, sink := range sinks {
		o := publishOne(t, sink, m)
		wantOutcome(t, o, x.class, x.words...)
		findings := sink.Check(testContext(t), []string{"events"})
		isProblem := func(f operator.Finding) bool { return f.Level == operator.LevelError }
		if !x.silent && !slices.ContainsFunc(findings, isProblem) {
			t.Errorf("Check found %+v, want an error", findings)
		}
		if text := fmt.Sprint(o.Err, findings); strings.Contains(text, hidden) {
			t.Errorf("%q shows the password", text)
		}
	}
	if x.end == nil {
		return
	}
	say(t, admin, x.end)
	await.True(t, time.Minute, "the server serves again", func() bool { return c.Ping(testContext(t)).Err() == nil })
	for _, sink := range sinks {
		wantOutcome(t, publishOne(t, sink, m), relay.ClassPublished)
	}
}

func (x trouble) open(t *testing.T, s server, idempotentFor time.Duration) *Sink {
	t.Helper()
	config := Config{Addresses: []string{s.address()}, IdempotentFor: idempotentFor}
	switch x.user {
	case "relay":
		config.User, config.Password = "relay", "secret"
	case "wrong":
		config.User, config.Password = "relay", hidden
	}
	return open(t, config)
}

// say sends commands of plain words.
func say(t *testing.T, c *redis.Client, commands []string) {
	t.Helper()
	for _, command := range commands {
		var words []any
		for word := range strings.FieldsSeq(command) {
			words = append(words, word)
		}
		do(t, c, words...)
	}
}

// breakSnapshots lets a snapshot fail, because something stands where its file should be.
func breakSnapshots(t *testing.T, s server, c *redis.Client) {
	t.Helper()
	obstacle := s.File("dump.rdb")
	if err := os.MkdirAll(filepath.Join(obstacle, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(obstacle) }) // without a snapshot it would not stop
	do(t, c, "CONFIG", "SET", "save", "3600 1")
	await.True(t, time.Minute, "a snapshot fails", func() bool {
		_ = c.BgSave(testContext(t)).Err() // one may be under way
		return strings.Contains(c.Info(testContext(t), "persistence").Val(), "rdb_last_bgsave_status:err")
	})
}

// keepBusy has a script run that does not end.
func keepBusy(t *testing.T, s server, c *redis.Client) {
	t.Helper()
	running := client(t, s.address())
	go running.Eval(context.Background(), "while true do end", nil)
	await.True(t, time.Minute, "the server is busy", func() bool { return redis.HasErrorPrefix(c.Ping(testContext(t)).Err(), "BUSY") })
}

// keepLoading has the server read its data slowly.
func keepLoading(t *testing.T, s server, c *redis.Client) {
	t.Helper()
	for i := range 1000 {
		do(t, c, "SET", fmt.Sprint("key", i), strings.Repeat("x", 10_000))
	}
	do(t, c, "CONFIG", "SET", "rdbcompression", "no")
	do(t, c, "CONFIG", "SET", "loading-process-events-interval-bytes", "1024")
	do(t, c, "CONFIG", "SET", "key-load-delay", "20000")
	reloading := client(t, s.address())
	go reloading.Do(context.Background(), "DEBUG", "RELOAD")
	await.True(t, time.Minute, "the server is loading", func() bool { return redis.HasErrorPrefix(c.Ping(testContext(t)).Err(), "LOADING") })
}
