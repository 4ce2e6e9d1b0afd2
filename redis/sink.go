package redis

import (
	"context"
	"crypto/sha1" // #nosec G505 -- scripts are named by it
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/relay"
)

// pipelineBytes is what a pipeline holds at most. A larger message has one of its own, so that a server that breaks the
// connection because of it harms no other.
const pipelineBytes = 1 << 20

// Sink publishes to Redis Streams. It implements relay.Sink.
type Sink struct {
	config  Config
	client  redis.UniversalClient
	cluster *redis.ClusterClient // nil when it is none
	limits  limits
	trimmer trimmer
}

var _ relay.Sink = (*Sink)(nil)

var (
	//go:embed once.lua
	onceScript string
	onceName   = scriptName(onceScript)
)

func scriptName(source string) string {
	sum := sha1.Sum([]byte(source)) // #nosec G401
	return hex.EncodeToString(sum[:])
}

// Open checks the configuration. It connects when something is published; a server that is not reachable or refuses the
// login shows as unavailable then, and with Check. The error reports every mistake of the configuration.
func Open(c Config) (*Sink, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("redis sink: %w", err)
	}
	s := &Sink{config: c, client: c.client()}
	s.cluster, _ = s.client.(*redis.ClusterClient)
	return s, nil
}

// Publish sends the batch in rounds: one message of each key in pipelines, and the next ones after the answers. See
// relay.Sink and the package comment. After its context has ended it returns within ten seconds, or twenty with
// Replicas or Fsync.
func (s *Sink) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	b := keyorder.New(batch)
	s.refuse(ctx, batch, b)
	var accepted []int
	for round := b.Round(); len(round) > 0; round = b.Round() {
		stored, err := s.publishRound(ctx, batch, round, b)
		accepted = append(accepted, stored...)
		if err != nil {
			b.SettleRest(s.unavailable(ctx, err))
		}
	}
	if s.config.waits() {
		s.confirm(ctx, batch, accepted, b)
	}
	s.trim(ctx, batch, accepted)
	return b.Outcomes()
}

// refuse settles what can never be sent.
func (s *Sink) refuse(ctx context.Context, batch []relay.Message, b *keyorder.Batch) {
	for i, m := range batch {
		err := s.checkMessage(m)
		if err == nil {
			err = s.checkSize(ctx, m)
		}
		if err != nil {
			b.Settle(i, relay.Permanent(fmt.Errorf("redis: %w", err)))
		}
	}
}

// publishRound sends the messages of a round and returns those that were stored. It returns an error when sending more
// makes no sense.
func (s *Sink) publishRound(ctx context.Context, batch []relay.Message, round []int, b *keyorder.Batch) ([]int, error) {
	flights, unavailable := s.flights(ctx, batch, round)
	var stored []int
	for _, f := range flights {
		if unavailable == nil && ctx.Err() != nil {
			unavailable = context.Cause(ctx)
		}
		if unavailable != nil {
			return stored, unavailable
		}
		for n, a := range s.send(ctx, batch, f) {
			o := s.outcomeOf(ctx, a, batch[f.messages[n]].Topic)
			b.Settle(f.messages[n], o)
			switch o.Class {
			case relay.ClassPublished:
				stored = append(stored, f.messages[n])
			case relay.ClassUnavailable:
				unavailable = a.err
			}
		}
	}
	return stored, unavailable
}

// flight is what goes to a node in one pipeline.
type flight struct {
	node     *redis.Client
	messages []int
	bytes    int
}

// flights groups messages by their nodes.
func (s *Sink) flights(ctx context.Context, batch []relay.Message, messages []int) ([]*flight, error) {
	var all []*flight
	last := make(map[*redis.Client]*flight)
	for _, i := range messages {
		node, err := s.node(ctx, batch[i].Topic)
		if err != nil {
			return nil, err
		}
		bytes, _ := size(batch[i])
		f := last[node]
		if f == nil || f.bytes+bytes > pipelineBytes {
			f = &flight{node: node}
			last[node] = f
			all = append(all, f)
		}
		f.messages = append(f.messages, i)
		f.bytes += bytes
	}
	return all, nil
}

// node returns the client of the master that has the stream.
func (s *Sink) node(ctx context.Context, stream string) (*redis.Client, error) {
	if s.cluster == nil {
		return s.client.(*redis.Client), nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	node, err := s.cluster.MasterForKey(ctx, stream)
	if err != nil {
		return nil, fmt.Errorf("finding the node of the cluster that has stream %s: %w", stream, err)
	}
	return node, nil
}

// answer is the id of an entry, or why there is none.
type answer struct {
	id  string
	err error
}

// send returns the answer to each message of a flight. What was sent may be stored, so the answers are waited for
// whether or not the context has ended.
func (s *Sink) send(ctx context.Context, batch []relay.Message, f *flight) []answer {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), answerTimeout, errNoAnswer)
	defer cancel()
	pipe := f.node.Pipeline()
	var load *redis.StringCmd
	if s.config.IdempotentFor > 0 {
		load = pipe.ScriptLoad(ctx, onceScript) // in each pipeline, because a server may forget it at any time
	}
	commands := make([]*redis.Cmd, len(f.messages))
	for n, i := range f.messages {
		commands[n] = s.command(ctx, batch[i], "EVALSHA", onceName)
		_ = pipe.Process(ctx, commands[n]) // only queues it
	}
	_, failed := pipe.Exec(ctx) // the first error of any command
	answers := make([]answer, len(commands))
	for n, command := range commands {
		a := &answers[n]
		a.id, a.err = command.Text()
		switch {
		case a.err == nil:
		case command.Err() == nil: // no answer at all
			a.err = failed
		case load != nil && load.Err() != nil && redis.HasErrorPrefix(a.err, "NOSCRIPT"):
			a.err = load.Err()
		}
		if s.cluster != nil && isRedirection(a.err) {
			a.id, a.err = s.follow(ctx, batch[f.messages[n]])
		}
	}
	return answers
}

// command writes a message to its stream. The idempotent mode runs its script, as eval and script say.
func (s *Sink) command(ctx context.Context, m relay.Message, eval, script string) *redis.Cmd {
	arguments := []any{"XADD", m.Topic, "*"}
	if s.config.IdempotentFor > 0 {
		arguments = []any{eval, script, 2, m.Topic, marker(m), s.config.IdempotentFor.Milliseconds()}
	}
	return redis.NewCmd(ctx, append(arguments, fields(m)...)...)
}

// follow sends a message to the node that has its slot now. The node that was asked has not stored it, and the new one
// may not know the script.
func (s *Sink) follow(ctx context.Context, m relay.Message) (id string, err error) {
	command := s.command(ctx, m, "EVAL", onceScript)
	if err := s.cluster.Process(ctx, command); err != nil {
		return "", err
	}
	return command.Text()
}

// confirm waits until replicas and disks have what was accepted, and takes back what they have not. It asks for each
// marker again, on the connection that waits: that shows that the master which is waited for has the entry, after a
// failover too, and renewing a marker is a write, which is all that a connection is promised to wait for.
func (s *Sink) confirm(ctx context.Context, batch []relay.Message, accepted []int, b *keyorder.Batch) {
	if len(accepted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), answerTimeout, errNoAnswer)
	defer cancel()
	flights, err := s.flights(ctx, batch, accepted)
	if err != nil {
		for _, i := range accepted {
			b.Settle(i, s.unavailable(ctx, err))
		}
	}
	for _, f := range flights {
		pipe := f.node.Pipeline()
		markers := make([]*redis.BoolCmd, len(f.messages))
		for n, i := range f.messages {
			markers[n] = pipe.PExpire(ctx, marker(batch[i]), s.config.IdempotentFor)
		}
		waiting := s.wait(ctx, pipe)
		_, _ = pipe.Exec(ctx) // each command has its error
		err := s.enough(waiting)
		for n, i := range f.messages {
			there, missing := markers[n].Result()
			switch {
			case missing != nil:
				b.Settle(i, s.unavailable(ctx, missing))
			case !there:
				b.Settle(i, s.unavailable(ctx, errors.New("the server has lost the entry before it was confirmed")))
			case err != nil:
				b.Settle(i, s.unavailable(ctx, err))
			}
		}
	}
}

// wait asks for the replicas and disks that have what the connection has written.
func (s *Sink) wait(ctx context.Context, pipe redis.Pipeliner) *redis.Cmd {
	if s.config.Fsync {
		return pipe.Do(ctx, "WAITAOF", 1, s.config.Replicas, waitTimeout.Milliseconds())
	}
	return pipe.Do(ctx, "WAIT", s.config.Replicas, waitTimeout.Milliseconds())
}

// enough says what is missing of what wait asked for.
func (s *Sink) enough(waiting *redis.Cmd) error {
	if !s.config.Fsync {
		replicas, err := waiting.Int()
		if err == nil && replicas < s.config.Replicas {
			err = fmt.Errorf("%d replicas have it after %s, want %d", replicas, waitTimeout, s.config.Replicas)
		}
		return err
	}
	disks, err := waiting.Int64Slice()
	switch {
	case err != nil:
		return err
	case disks[0] < 1:
		return fmt.Errorf("not on the master's disk after %s", waitTimeout)
	case disks[1] < int64(s.config.Replicas):
		return fmt.Errorf("on the disks of %d replicas after %s, want %d", disks[1], waitTimeout, s.config.Replicas)
	}
	return nil
}

// Close ends the connections. It is called once, after the last Publish has returned.
func (s *Sink) Close() error { return s.client.Close() }
