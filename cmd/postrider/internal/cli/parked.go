package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/consumer/parking"
)

func (c *command) parked() *cobra.Command {
	return group("parked", "Shows the messages that consumers have parked, has them tried at once or gives them up",
		c.parkedList(), c.parkedShow(), c.parkedRetry(), c.parkedGiveUp(), c.parkedInit())
}

const parkedIsID = "ID is that of a message, as `inbox parked list` shows it for the first one of each key."

// parkedID reads an ID.
func parkedID(arg string) (int64, error) {
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil {
		return 0, usageError{fmt.Errorf("%q is no id of a parked message: postrider inbox parked list shows them", arg)}
	}
	return id, nil
}

// selectsConsumer adds --consumer.
func selectsConsumer(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "consumer", "", "only keys of the consumer with this `name`")
}

func (c *command) parkedList() *cobra.Command {
	var name string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Lists parked keys, those first that are parked for the longest time",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usageError{fmt.Errorf("--limit %d is below 1", limit)}
			}
			ctx, cancel := looking(cmd)
			defer cancel()
			return c.withParked(func(parked *parking.Table) error {
				keys, err := parked.List(ctx, name, limit)
				if err != nil {
					return err
				}
				return c.printParked(keys)
			})
		},
	}
	selectsConsumer(cmd, &name)
	cmd.Flags().IntVar(&limit, "limit", 100, "at most this many keys")
	return c.printsJSON(cmd)
}

// withParked calls f with the configured table of parked messages.
func (c *command) withParked(f func(*parking.Table) error) error {
	return c.withInbox(wiring.OpenInbox, func(in *wiring.Inbox) error {
		parked, err := in.Parked()
		if err != nil {
			return err
		}
		return f(parked)
	})
}

func (c *command) printParked(keys []parking.Parked) error {
	if c.json {
		return c.printJSON(map[string]any{"parked": append([]parking.Parked{}, keys...)})
	}
	t := newTable(c.stdout, "ID", "CONSUMER", "TOPIC", "KEY", "MESSAGES", "PARKED", "NEXT TRY", "ATTEMPTS", "CLASS", "ERROR")
	for _, p := range keys {
		t.row(strconv.FormatInt(p.ID, 10), p.Consumer, p.Topic, p.Key, strconv.FormatInt(p.Messages, 10), human.UTC(p.At), nextTry(p),
			strconv.Itoa(p.Attempts), string(p.Class), short(parkedError(p)))
	}
	return t.flush()
}

// nextTry says in a few words when a key is tried.
func nextTry(p parking.Parked) string {
	switch {
	case p.DueSeconds <= 0:
		return "due"
	case p.Claimed:
		return "under way"
	default:
		return "in " + human.Seconds(p.DueSeconds)
	}
}

// parkedError says in one line why a key waits.
func parkedError(p parking.Parked) string {
	text := p.Error
	if p.LetterError != "" {
		text = "no dead letter: " + p.LetterError
	}
	if p.GivenUp != nil {
		text = strings.TrimSuffix("given up; "+text, "; ")
	}
	return text
}

func (c *command) parkedShow() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Shows a parked key, and its first message with headers and payload",
		Long:  "Shows a parked key, and its first message with headers and payload; more of its messages with --limit.\n\n" + parkedIsID,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parkedID(args[0])
			if err != nil {
				return err
			}
			if limit < 1 {
				return usageError{fmt.Errorf("--limit %d is below 1", limit)}
			}
			ctx, cancel := looking(cmd)
			defer cancel()
			return c.withParked(func(parked *parking.Table) error {
				key, messages, err := parked.Show(ctx, id, limit)
				if err != nil {
					return err
				}
				return c.printParkedKey(key, messages)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 1, "at most this many messages, from the first one on")
	return c.printsJSON(cmd)
}

// parkedMessageJSON is a message of a parked key.
type parkedMessageJSON struct {
	ID          int64             `json:"id,string"`
	EventID     string            `json:"event_id"`
	EventType   string            `json:"event_type"`
	Coordinates string            `json:"coordinates"`
	GivenUp     *consumer.GivenUp `json:"given_up"`
	contentJSON
}

func (c *command) printParkedKey(p parking.Parked, messages []consumer.ParkedMessage) error {
	if c.json {
		list := make([]parkedMessageJSON, len(messages))
		for i, m := range messages {
			list[i] = parkedMessageJSON{
				m.ID, m.Message.EventID(), m.Message.EventType(), m.Message.Coordinates, m.GivenUp, newContentJSON(m.Message),
			}
		}
		return c.printJSON(struct {
			parking.Parked
			First []parkedMessageJSON `json:"first_messages"`
		}{p, list})
	}
	t := newTable(c.stdout)
	t.row("consumer", p.Consumer)
	t.row("topic", p.Topic)
	t.row("key", p.Key)
	t.row("messages", strconv.FormatInt(p.Messages, 10))
	t.row("parked_at", human.UTC(p.At))
	t.row("next_try", nextTry(p))
	t.row("attempts", strconv.Itoa(p.Attempts))
	t.row("class", string(p.Class))
	t.row("error", p.Error)
	t.row("first_failed_at", human.UTC(p.FirstFailedAt))
	if p.LetterError != "" {
		t.row("letter_error", p.LetterError)
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, m := range messages {
		if err := c.printParkedMessage(m); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) printParkedMessage(m consumer.ParkedMessage) error {
	fmt.Fprintln(c.stdout)
	t := newTable(c.stdout)
	t.row("message", strconv.FormatInt(m.ID, 10))
	t.row("coordinates", m.Message.Coordinates)
	if m.GivenUp != nil {
		t.row("given_up", "by "+m.GivenUp.By+": "+m.GivenUp.Reason)
	}
	return c.printMessage(t, m.Message)
}

func (c *command) parkedRetry() *cobra.Command {
	var name string
	var all bool
	cmd := &cobra.Command{
		Use:   "retry ID... | --all",
		Short: "Makes parked keys due at once",
		Long: "Makes parked keys due at once. One that is being tried at this moment is tried again at once unless that succeeds.\n" +
			"Its consumer must be running.\n\n" + parkedIsID,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && !all:
				return usageError{errors.New("no keys are chosen: name ids, or say --all")}
			case len(args) > 0 && (all || name != ""):
				return usageError{errors.New("--all and --consumer contradict ids: use one of them")}
			}
			ids := make([]int64, len(args))
			for i, arg := range args {
				var err error
				if ids[i], err = parkedID(arg); err != nil {
					return err
				}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), answerTimeout)
			defer cancel()
			return c.withParked(func(parked *parking.Table) error {
				if all {
					n, err := parked.RetryAll(ctx, name)
					if err != nil {
						return err
					}
					return c.printRetried(n)
				}
				n, err := retryParked(ctx, parked, ids)
				return errors.Join(c.printRetried(n), err)
			})
		},
	}
	selectsConsumer(cmd, &name)
	cmd.Flags().BoolVar(&all, "all", false, "take every key, or every one of --consumer")
	return c.printsJSON(cmd)
}

// retryParked goes on after messages that are not parked any more, and ends at any other error.
func retryParked(ctx context.Context, t *parking.Table, ids []int64) (n int64, err error) {
	for _, id := range ids {
		problem := t.Retry(ctx, id)
		if problem == nil {
			n++
		}
		err = errors.Join(err, problem)
		if problem != nil && !errors.Is(problem, parking.ErrNotParked) {
			break
		}
	}
	return n, err
}

func (c *command) printRetried(n int64) error {
	if c.json {
		return c.printJSON(map[string]int64{"retried": n})
	}
	keys := "keys are"
	if n == 1 {
		keys = "key is"
	}
	_, err := fmt.Fprintf(c.stdout, "%d %s due\n", n, keys)
	return err
}

func (c *command) parkedGiveUp() *cobra.Command {
	var act actionFlags
	cmd := &cobra.Command{
		Use:   "give-up --reason TEXT ID",
		Short: "Says that a parked message is not to be applied: its consumer makes it a dead letter and goes on with the next one of the key",
		Long: "Says that a parked message is not to be applied, and writes who says so and why to the audit table. Its consumer ends it\n" +
			"when its turn comes, which is at once for the first message of a key: it becomes a dead letter, unless the consumer's\n" +
			"policy drops what is exhausted, and the next message of the key is tried. If it is being tried at this moment, and that\n" +
			"succeeds, it is applied. Nothing else moves it, so the consumer must be running.\n\n" + parkedIsID,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parkedID(args[0])
			if err != nil {
				return err
			}
			action := act.action()
			if action.Reason == "" {
				return usageError{errors.New("--reason is missing: it is kept, and says why the message need not be applied")}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), answerTimeout)
			defer cancel()
			return c.withParked(func(parked *parking.Table) error {
				if err := parked.GiveUp(ctx, id, action.Who, action.Reason); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.stdout, "message %d is given up: its consumer ends it\n", id)
				return err
			})
		},
	}
	act.add(cmd, "audit line and the dead letter")
	return cmd
}

func (c *command) parkedInit() *cobra.Command {
	var printed bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Creates the tables of parked messages, which only consumers that park need",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withInbox(wiring.CreateInbox, func(in *wiring.Inbox) error {
				parked, err := in.Parked()
				if err != nil {
					return err
				}
				if printed {
					_, err := fmt.Fprint(c.stdout, parked.InitSQL())
					return err
				}
				if err := parked.Init(cmd.Context()); err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.stdout, "the tables of parked messages are ready in %s\n", in.Address)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&printed, "print", false, "print the SQL and touch nothing")
	return cmd
}
