package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

//go:embed probe.lua
var probeSource string

var probeScript = redis.NewScript(probeSource)

// Check looks at everything that publishing to the streams needs: the connection and login, the settings of each master,
// and for each stream whether the login may write to it. It writes no entry. It returns within about ten seconds for
// each thing that does not answer.
func (s *Sink) Check(ctx context.Context, streams []string) []operator.Finding {
	masters, err := s.masters(ctx)
	if err != nil {
		return []operator.Finding{operator.Problem("redis server", err.Error(), "start the server, or correct the addresses, the name of the master, TLS or the login")}
	}
	var findings []operator.Finding
	for _, m := range masters {
		findings = append(findings, operator.OK(m.name, "answers"))
		findings = append(findings, s.checkMaster(ctx, m)...)
	}
	if s.config.Replicas == 0 && (s.cluster != nil || s.config.Master != "") {
		findings = append(findings, operator.Warning("failover", "a replica that takes over may lack events that were published",
			"set replicas to 1, which needs idempotent_for"))
	}
	for _, stream := range streams {
		findings = append(findings, s.checkStream(ctx, stream)...)
	}
	return findings
}

// master is a server that takes events, and its name in findings.
type master struct {
	*redis.Client
	name string
}

// masters returns those that answer; an error when one does not.
func (s *Sink) masters(ctx context.Context) ([]master, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if s.cluster == nil {
		client := s.client.(*redis.Client)
		return []master{{client, "redis server"}}, client.Ping(ctx).Err()
	}
	var (
		mu  sync.Mutex
		all []master
	)
	err := s.cluster.ForEachMaster(ctx, func(ctx context.Context, client *redis.Client) error {
		mu.Lock()
		all = append(all, master{client, "redis node " + client.Options().Addr})
		mu.Unlock()
		return client.Ping(ctx).Err()
	})
	return all, err
}

// checkMaster looks at what the server does with what it has acknowledged.
func (s *Sink) checkMaster(ctx context.Context, m master) []operator.Finding {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var findings []operator.Finding
	if s.config.waits() {
		findings = append(findings, s.checkWait(ctx, m)...)
	}
	reading := redis.NewMapStringStringCmd(ctx, "CONFIG", "GET", "maxmemory-policy", "appendonly", "appendfsync", "save")
	if err := m.Process(ctx, reading); err != nil {
		return append(findings, operator.Warning(m.name, "its settings cannot be read: "+err.Error(),
			"let this login use CONFIG GET, or look yourself: appendonly yes, maxmemory-policy noeviction, proto-max-bulk-len not below max_message_bytes"))
	}
	settings := reading.Val()
	return append(append(findings, s.checkEviction(m, settings)...), s.checkPersistence(m, settings)...)
}

// checkWait asks for what Publish will wait for.
func (s *Sink) checkWait(ctx context.Context, m master) []operator.Finding {
	pipe := m.Pipeline()
	waiting := s.wait(ctx, pipe)
	_, _ = pipe.Exec(ctx) // the command has its error
	if err := s.enough(waiting); err != nil {
		return []operator.Finding{operator.Problem(m.name, "does not confirm events: "+err.Error(),
			"add replicas, or ask for fewer; fsync needs appendonly yes, and Redis 7.2 or Valkey")}
	}
	return nil
}

func (s *Sink) checkEviction(m master, settings map[string]string) []operator.Finding {
	policy := settings["maxmemory-policy"]
	hint := "set maxmemory-policy to noeviction"
	switch {
	case strings.HasPrefix(policy, "allkeys-"):
		return []operator.Finding{operator.Warning(m.name, "maxmemory-policy "+policy+" removes whole streams when memory is short", hint)}
	case strings.HasPrefix(policy, "volatile-") && s.config.IdempotentFor > 0:
		return []operator.Finding{operator.Warning(m.name,
			"maxmemory-policy "+policy+" removes the keys by which repeated events are recognized when memory is short", hint)}
	}
	return nil
}

func (s *Sink) checkPersistence(m master, settings map[string]string) []operator.Finding {
	switch {
	case settings["appendonly"] != "yes" && settings["save"] == "":
		return []operator.Finding{operator.Warning(m.name, "keeps published events in memory only: a restart loses all of them", "set appendonly to yes")}
	case settings["appendonly"] != "yes":
		return []operator.Finding{operator.Warning(m.name, "saves snapshots only: a crash loses what was published since the last one", "set appendonly to yes")}
	case s.config.Fsync:
		return nil
	case settings["appendfsync"] != "always":
		return []operator.Finding{operator.Warning(m.name,
			"appendfsync "+settings["appendfsync"]+": when the machine fails, the last published events are lost, with everysec those of about a second",
			"set appendfsync to always, or fsync of this sink")}
	}
	return nil
}

func (s *Sink) checkStream(ctx context.Context, stream string) []operator.Finding {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	about := "stream " + stream
	m := relay.Message{EventID: "check", Topic: stream}
	if err := s.checkMessage(m); err != nil {
		return []operator.Finding{operator.Problem(about, err.Error(), "correct the topic of the route")}
	}
	kind, err := s.client.Type(ctx, stream).Result()
	if err == nil && kind != "stream" && kind != "none" {
		return []operator.Finding{operator.Problem(about, "this key holds a "+kind, "choose another topic, or remove the key")}
	}
	if err := s.mayWrite(ctx, m); err != nil {
		return []operator.Finding{operator.Problem(about, err.Error(), "let this login do what the page about this sink lists, on this key")}
	}
	if s.config.Trim != TrimSafe {
		return []operator.Finding{operator.OK(about, "can be written to")}
	}
	// Keeping everything reads all that trimming reads, and removes nothing.
	if err := s.trimStream(ctx, stream, math.MaxInt64); err != nil {
		return []operator.Finding{operator.Warning(about, "it would not be trimmed: "+err.Error(), "let this login use XLEN, XINFO GROUPS, XPENDING and XTRIM")}
	}
	if groups, err := s.client.XInfoGroups(ctx, stream).Result(); err == nil && len(groups) == 0 {
		return []operator.Finding{operator.Warning(about, "has no consumer group, so trim: safe removes nothing", "create the group, or set trim to always")}
	}
	return []operator.Finding{operator.OK(about, "can be written to")}
}

// mayWrite tries to write in a way that a server which would take it always refuses: no entry can have the id 0-0.
func (s *Sink) mayWrite(ctx context.Context, m relay.Message) error {
	arguments := append([]any{"XADD", m.Topic, "NOMKSTREAM", "0-0"}, fields(m)...)
	command := redis.NewCmd(ctx, arguments...)
	if err := s.client.Process(ctx, command); err != nil && !strings.Contains(err.Error(), "must be greater than 0-0") {
		return fmt.Errorf("nothing can be written: %w", err)
	}
	if s.config.IdempotentFor == 0 {
		return nil
	}
	if err := probeScript.Run(ctx, s.client, []string{m.Topic, marker(m)}).Err(); err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("the idempotent mode does not work: %w", err)
	}
	return nil
}
