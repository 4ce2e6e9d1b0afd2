package redis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/operator"
)

// TestCheckOfSettings has a server with each setting that loses events.
func TestCheckOfSettings(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := launch(t, kind)
			c := client(t, s.address())
			plain := open(t, Config{Addresses: []string{s.address()}})
			once := open(t, Config{Addresses: []string{s.address()}, IdempotentFor: time.Minute})
			for _, test := range []struct {
				setting, value string
				sink           *Sink
				words          string // of the warning; empty when there is none
			}{
				{"appendfsync", "everysec", plain, "appendfsync everysec"},
				{"appendfsync", "no", plain, "appendfsync no"},
				{"appendfsync", "always", plain, ""},
				{"maxmemory-policy", "volatile-ttl", plain, ""},
				{"maxmemory-policy", "volatile-ttl", once, "maxmemory-policy volatile-ttl"},
				{"maxmemory-policy", "allkeys-lru", plain, "whole streams"},
				{"maxmemory-policy", "noeviction", once, ""},
				{"appendonly", "no", plain, "memory only"},
				{"save", "3600 1", plain, "snapshots only"},
			} {
				do(t, c, "CONFIG", "SET", test.setting, test.value)
				findings := test.sink.Check(testContext(t), []string{"events"})
				wantFinding(t, findings, operator.LevelOK, "redis server: answers")
				wantFinding(t, findings, operator.LevelOK, "stream events: can be written to")
				if test.words != "" {
					wantFinding(t, findings, operator.LevelWarning, test.words)
				} else if len(findings) != 2 {
					t.Errorf("%s %s: Check found %+v, want nothing wrong", test.setting, test.value, findings)
				}
			}
			if keys := do(t, c, "XLEN", "events"); keys != int64(0) {
				t.Errorf("Check wrote %d entries", keys)
			}
			do(t, c, "CONFIG", "SET", "save", "") // so that it stops
		})
	}
}

func TestCheckOfStreams(t *testing.T) {
	s := launch(t, "redis")
	c := client(t, s.address())
	do(t, c, "SET", "text", "taken")
	do(t, c, "XADD", "lonely", "*", "a", "b")
	do(t, c, "XADD", "grouped", "*", "a", "b")
	do(t, c, "XGROUP", "CREATE", "grouped", "g", "0")
	do(t, c, "ACL", "SETUSER", "relay", "on", ">secret", "~lonely", "~grouped", "~text", "~postrider:*", "+@all")
	config := Config{Addresses: []string{s.address()}, User: "relay", Password: "secret", IdempotentFor: time.Minute, Trim: TrimSafe, MaxEntries: 1}
	sink := open(t, config)
	for _, test := range []struct {
		stream string
		level  operator.Level
		words  string
	}{
		{"text", operator.LevelError, "holds a string"},
		{"lonely", operator.LevelWarning, "no consumer group"},
		{"grouped", operator.LevelOK, "can be written to"},
		{"secret", operator.LevelError, "NOPERM"},
		{"", operator.LevelError, "no topic"},
	} {
		wantFinding(t, sink.Check(testContext(t), []string{test.stream}), test.level, "stream "+test.stream+": ")
		wantFinding(t, sink.Check(testContext(t), []string{test.stream}), test.level, test.words)
	}
	for _, command := range []string{"evalsha", "get", "set", "pexpire"} {
		do(t, c, "ACL", "SETUSER", "relay", "-"+command)
		wantFinding(t, sink.Check(testContext(t), []string{"grouped"}), operator.LevelError, "idempotent mode does not work")
		do(t, c, "ACL", "SETUSER", "relay", "+"+command)
	}
	if n := do(t, c, "XLEN", "grouped"); n != int64(1) {
		t.Errorf("the stream has %d entries after Check, want the one of before", n)
	}
}

func TestConfigReportsEveryMistake(t *testing.T) {
	for _, test := range []struct {
		config Config
		words  []string
	}{
		{Config{}, []string{"no addresses"}},
		{
			Config{
				Addresses: []string{"redis://user:" + hidden + "@host", "host:1"}, Cluster: true, Master: "m", DB: 1, User: "u", MaxMessageBytes: 1,
				IdempotentFor: time.Second, Replicas: -1, Trim: "some",
			},
			[]string{"address 1", "not both", "database 1", "without a password", "largest message of 1", "idempotent for 1s", "-1 replicas", `trim "some"`},
		},
		{
			Config{Addresses: []string{"a:1", "b:1"}, SentinelPassword: hidden, Fsync: true, Trim: TrimSafe, MaxEntries: -1},
			[]string{"several addresses", "no master", "need the idempotent mode", "trim safe"},
		},
		{Config{Addresses: []string{"a:1"}, DB: -1, MaxEntries: 5, Replicas: 1}, []string{"database -1", "nothing trims", "need the idempotent mode"}},
	} {
		sink, err := Open(test.config)
		if err == nil {
			sink.Close()
			t.Fatalf("no error for %+v", test.config)
		}
		for _, words := range test.words {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("error %q does not mention %q", err, words)
			}
		}
		if lines := strings.Count(err.Error(), "\n") + 1; lines != len(test.words) {
			t.Errorf("error %q has %d lines, want %d", err, lines, len(test.words))
		}
		if strings.Contains(err.Error(), hidden) {
			t.Errorf("error %q shows a password", err)
		}
	}
}

// TestCheckOfNothing has nobody at the address.
func TestCheckOfNothing(t *testing.T) {
	for _, config := range []Config{
		{Addresses: []string{"127.0.0.1:1"}}, {Addresses: []string{"127.0.0.1:1"}, Cluster: true}, {Addresses: []string{"127.0.0.1:1"}, Master: "m"},
	} {
		findings := open(t, config).Check(testContext(t), []string{"events"})
		isProblem := func(f operator.Finding) bool { return f.Level == operator.LevelError }
		if len(findings) != 1 || !slices.ContainsFunc(findings, isProblem) {
			t.Errorf("Check found %+v, want one error", findings)
		}
	}
}
