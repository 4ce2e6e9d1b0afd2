package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/inbox"
)

func (c *command) dlt() *cobra.Command {
	return group("dlt", "Shows the dead-letter topics of consumers, and sends letters back to where they were read",
		c.dltList(), c.dltShow(), c.dltRedrive())
}

// topicFlags name a dead-letter topic.
type topicFlags struct{ sink, topic string }

func (f *topicFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.sink, "sink", "", "`name` of the sink whose broker has the topic (default the only sink)")
	cmd.Flags().StringVar(&f.topic, "topic", "", "the dead-letter `topic`, in the sink's own form, such as orders.dlt, or /orders.dlt for RabbitMQ")
}

// find returns the sink that the flags name.
func (f *topicFlags) find(cfg *config.Config) (config.Sink, error) {
	if f.topic == "" {
		return config.Sink{}, usageError{errors.New("--topic is missing")}
	}
	if f.sink == "" && len(cfg.Sinks) == 1 {
		return cfg.Sinks[0], nil
	}
	var names []string
	for _, s := range cfg.Sinks {
		if s.Name == f.sink {
			return s, nil
		}
		names = append(names, s.Name)
	}
	if f.sink == "" {
		return config.Sink{}, usageError{fmt.Errorf("--sink is missing: it is one of %s", strings.Join(names, ", "))}
	}
	return config.Sink{}, usageError{fmt.Errorf("--sink %q is none of %s", f.sink, strings.Join(names, ", "))}
}

// withTopic calls do with the topic that the flags name.
func (c *command) withTopic(f *topicFlags, do func(config.Sink, dlt.Topic) error) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	sink, err := f.find(cfg)
	if err != nil {
		return err
	}
	topic, err := wiring.OpenDeadLetters(sink, f.topic)
	if err != nil {
		return err
	}
	return errors.Join(do(sink, topic), topic.Close())
}

// letterFlags choose dead letters.
type letterFlags struct {
	origin, consumer, eventType, class, errorText, key, since, until string
}

func (f *letterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.origin, "origin", "", "only letters that were first read from this `topic`")
	flags.StringVar(&f.consumer, "consumer", "", "only letters of the consumer with this `name`")
	flags.StringVar(&f.eventType, "event-type", "", "only letters of this event `type`")
	flags.StringVar(&f.class, "class", "", "only letters whose error has this `class`: retry, permanent or malformed")
	flags.StringVar(&f.errorText, "error", "", "only letters whose error has this `text` in it")
	flags.StringVar(&f.key, "key", "", "only letters of this `key`")
	flags.StringVar(&f.since, "since", "", "only letters that failed at or after this `time`: RFC 3339, or how long ago, such as 2h")
	flags.StringVar(&f.until, "until", "", "only letters that failed before this `time`")
}

func (f *letterFlags) filter(refs []string) (dlt.Filter, error) {
	filter := dlt.Filter{Refs: refs, OriginTopic: f.origin, Consumer: f.consumer, EventType: f.eventType, Class: inbox.Class(f.class),
		ErrorContains: f.errorText, Key: f.key}
	classes := []inbox.Class{"", inbox.ClassRetry, inbox.ClassPermanent, inbox.ClassMalformed}
	if !slices.Contains(classes, filter.Class) {
		return filter, usageError{fmt.Errorf("--class %q is none of retry, permanent, malformed", f.class)}
	}
	var since, until error
	filter.Since, since = moment("--since", f.since)
	filter.Until, until = moment("--until", f.until)
	return filter, errors.Join(since, until)
}

// moment reads a time, or how long ago it is.
func moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, usageError{fmt.Errorf("%s %q is neither a time such as 2026-01-31T12:00:00Z nor a duration such as 2h", flag, text)}
	}
	return at, nil
}

// looksAtLetters completes a command that scans a topic.
func (c *command) looksAtLetters(cmd *cobra.Command, look func(ctx context.Context, topic dlt.Topic, chosen dlt.Filter) error) *cobra.Command {
	var at topicFlags
	var chosen letterFlags
	at.add(cmd)
	chosen.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, refs []string) error {
		filter, err := chosen.filter(refs)
		if err != nil {
			return err
		}
		return c.withTopic(&at, func(_ config.Sink, topic dlt.Topic) error { return look(cmd.Context(), topic, filter) })
	}
	return c.printsJSON(cmd)
}

const letterIsRef = "LETTER is an event id, or coordinates as `dlt list --each` shows them."

func (c *command) dltList() *cobra.Command {
	var each bool
	cmd := c.looksAtLetters(&cobra.Command{
		Use:     "list [LETTER...]",
		Short:   "Lists the letters of a dead-letter topic grouped by cause, the largest group first",
		Long:    "Lists the letters of a dead-letter topic grouped by cause, the largest group first. It consumes nothing.\n\n" + letterIsRef,
		Example: "  postrider dlt list --sink main --topic orders.dlt --class permanent --since 24h",
	}, func(ctx context.Context, topic dlt.Topic, chosen dlt.Filter) error {
		if each {
			return c.printEach(ctx, topic, chosen)
		}
		groups, _, err := groupsOf(ctx, topic, chosen)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(map[string]any{"groups": groups})
		}
		return c.printLetterGroups(groups)
	})
	cmd.Flags().BoolVar(&each, "each", false, "list each letter instead of groups, in the order of the topic")
	return cmd
}

// groupsOf adds the chosen letters up.
func groupsOf(ctx context.Context, topic dlt.Topic, chosen dlt.Filter) (groups []dlt.Group, letters int, err error) {
	var all dlt.Groups
	err = topic.Scan(ctx, func(l dlt.Letter) error {
		if chosen.Matches(l) {
			letters++
			all.Add(l)
		}
		return nil
	})
	return all.List(), letters, err
}

func (c *command) printLetterGroups(groups []dlt.Group) error {
	t := newTable(c.stdout, "LETTERS", "ORIGIN", "CONSUMER", "EVENT TYPE", "CLASS", "OLDEST", "NEWEST", "ONE OF THEM", "ERROR")
	for _, g := range groups {
		t.row(strconv.Itoa(g.Letters), g.OriginTopic, g.Consumer, g.EventType, string(g.Class), human.UTC(g.Oldest), human.UTC(g.Newest), g.Sample,
			short(g.Error))
	}
	return t.flush()
}

// letterJSON is a letter without its payload.
type letterJSON struct {
	Coordinates string      `json:"coordinates"`
	EventID     string      `json:"event_id"`
	EventType   string      `json:"event_type"`
	Key         string      `json:"key"`
	OriginTopic string      `json:"origin_topic"`
	Consumer    string      `json:"consumer"`
	Class       inbox.Class `json:"class"`
	Error       string      `json:"error"`
	At          time.Time   `json:"at"` // of its last failure
}

func newLetterJSON(l dlt.Letter) letterJSON {
	m := l.Message
	return letterJSON{
		Coordinates: m.Coordinates, EventID: m.EventID(), EventType: m.EventType(), Key: m.Key, OriginTopic: l.OriginTopic(), Consumer: l.Consumer(),
		Class: l.Class(), Error: l.Failure(), At: l.At(),
	}
}

func (c *command) printEach(ctx context.Context, topic dlt.Topic, chosen dlt.Filter) error {
	letters := []letterJSON{}
	err := topic.Scan(ctx, func(l dlt.Letter) error {
		if chosen.Matches(l) {
			letters = append(letters, newLetterJSON(l))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"letters": letters})
	}
	t := newTable(c.stdout, "LETTER", "EVENT ID", "EVENT TYPE", "KEY", "ORIGIN", "CONSUMER", "CLASS", "FAILED", "ERROR")
	for _, l := range letters {
		t.row(l.Coordinates, l.EventID, l.EventType, l.Key, l.OriginTopic, l.Consumer, string(l.Class), human.UTC(l.At), short(l.Error))
	}
	return t.flush()
}

// errFound ends a scan that has found what it looks for.
var errFound = errors.New("found")

func (c *command) dltShow() *cobra.Command {
	var at topicFlags
	cmd := &cobra.Command{
		Use:   "show LETTER",
		Short: "Shows one dead letter with its headers and its payload",
		Long:  "Shows one dead letter with its headers and its payload: the first one that LETTER names. It consumes nothing.\n\n" + letterIsRef,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, refs []string) error {
			return c.withTopic(&at, func(_ config.Sink, topic dlt.Topic) error {
				var found dlt.Letter
				err := topic.Scan(cmd.Context(), func(l dlt.Letter) error {
					if !(dlt.Filter{Refs: refs}).Matches(l) {
						return nil
					}
					found = l
					return errFound
				})
				switch {
				case errors.Is(err, errFound):
					return c.printLetter(found)
				case err != nil:
					return err
				default:
					return fmt.Errorf("%s has no letter %s", at.topic, plain(refs[0]))
				}
			})
		},
	}
	at.add(cmd)
	return c.printsJSON(cmd)
}

func (c *command) printLetter(l dlt.Letter) error {
	if c.json {
		return c.printJSON(newFullLetter(l))
	}
	m := l.Message
	t := newTable(c.stdout)
	t.row("letter", m.Coordinates)
	return c.printMessage(t, m)
}

// printMessage adds a message to a table, and prints the payload behind it.
func (c *command) printMessage(t table, m inbox.Message) error {
	t.row("event_id", m.EventID())
	t.row("key", m.Key)
	t.row("stored_at", human.UTC(m.At))
	for _, h := range m.Headers {
		t.row("header "+h.Name, h.Value)
	}
	if err := t.flush(); err != nil {
		return err
	}
	return c.printPayload(m.Payload)
}

// fullLetter is a letter with everything.
type fullLetter struct {
	letterJSON
	contentJSON
}

// contentJSON is what a message holds.
type contentJSON struct {
	StoredAt        *time.Time      `json:"stored_at"`
	Headers         []headerJSON    `json:"headers"`
	Payload         json.RawMessage `json:"payload"`
	PayloadEncoding string          `json:"payload_encoding"` // json or base64
}

type headerJSON struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func newFullLetter(l dlt.Letter) fullLetter {
	return fullLetter{newLetterJSON(l), newContentJSON(l.Message)}
}

func newContentJSON(m inbox.Message) contentJSON {
	content := contentJSON{Headers: []headerJSON{}, Payload: m.Payload, PayloadEncoding: "json"}
	if !m.At.IsZero() {
		at := m.At.UTC()
		content.StoredAt = &at
	}
	for _, h := range m.Headers {
		content.Headers = append(content.Headers, headerJSON(h))
	}
	if !isJSON(m.Payload) {
		content.Payload = strconv.AppendQuote(nil, base64.StdEncoding.EncodeToString(m.Payload))
		content.PayloadEncoding = "base64"
	}
	return content
}
