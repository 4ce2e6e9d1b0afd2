package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/dlt"
)

// redriveFlags say what goes back and how.
type redriveFlags struct {
	topicFlags
	chosen                    letterFlags
	acting                    actionFlags
	rate                      int
	all, preview, keepHeaders bool
}

func (f *redriveFlags) add(cmd *cobra.Command) {
	f.topicFlags.add(cmd)
	f.chosen.add(cmd)
	f.acting.add(cmd, "letters that Kafka keeps")
	flags := cmd.Flags()
	flags.IntVar(&f.rate, "rate", 0, "at most this many `letters` each second; 0 for no bound")
	flags.BoolVar(&f.all, "all", false, "take every letter; needed when none is chosen otherwise")
	flags.BoolVar(&f.preview, "preview", false, "send nothing: tell how many letters of which groups would go back")
	flags.BoolVar(&f.keepHeaders, "keep-headers", false, "leave the headers that tell of the failure on the messages: "+consumer.HeaderOriginTopic+", "+
		consumer.HeaderFailureMessage+" and the like")
}

func (f *redriveFlags) filter(refs []string) (dlt.Filter, error) {
	chosen := len(refs) > 0 || f.chosen != letterFlags{}
	switch {
	case f.rate < 0:
		return dlt.Filter{}, usageError{fmt.Errorf("--rate %d is below 0", f.rate)}
	case !chosen && !f.all:
		return dlt.Filter{}, usageError{errors.New("no letters are chosen: name some, use a filter such as --event-type, or say --all")}
	case chosen && f.all:
		return dlt.Filter{}, usageError{errors.New("--all contradicts letters and filters: use one of them")}
	}
	return f.chosen.filter(refs)
}

func (c *command) dltRedrive() *cobra.Command {
	var flags redriveFlags
	cmd := &cobra.Command{
		Use:   "redrive [LETTER...]",
		Short: "Sends dead letters back to the topics where they were first read",
		Long: "Sends dead letters back to the topics where they were first read, in the order of the dead-letter topic: with the same\n" +
			"event id, key and payload, and without the headers that tell of the failure. Each is taken out of the dead-letter topic once it\n" +
			"is durably back; Kafka cannot delete it, and gets a mark that it was redriven. A crash in between sends some letters again\n" +
			"by the next redrive: a consumer with an inbox applies them once. An interrupt ends it in good order.\n\n" + letterIsRef,
		Example: "  postrider dlt redrive --sink main --topic orders.dlt --event-type OrderPaid --preview\n" +
			"  postrider dlt redrive --sink main --topic orders.dlt --event-type OrderPaid --rate 50 --reason 'the account exists now'",
		RunE: func(cmd *cobra.Command, refs []string) error {
			filter, err := flags.filter(refs)
			if err != nil {
				return err
			}
			return c.withTopic(&flags.topicFlags, func(sink config.Sink, topic dlt.Topic) error {
				if flags.preview {
					return c.previewLetters(cmd.Context(), topic, filter)
				}
				return c.redriveLetters(cmd.Context(), sink, topic, filter, flags)
			})
		},
	}
	flags.add(cmd)
	return c.printsJSON(cmd)
}

func (c *command) previewLetters(ctx context.Context, topic dlt.Topic, filter dlt.Filter) error {
	groups, letters, err := groupsOf(ctx, topic, filter)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"letters": letters, "groups": groups})
	}
	fmt.Fprintf(c.stdout, "%s would be redriven\n", human.Letters(letters))
	if letters == 0 {
		return nil
	}
	fmt.Fprintln(c.stdout)
	return c.printLetterGroups(groups)
}

func (c *command) redriveLetters(ctx context.Context, sink config.Sink, topic dlt.Topic, filter dlt.Filter, flags redriveFlags) error {
	sinks, err := wiring.OpenSinkElsewhere(ctx, sink)
	if err != nil {
		return err
	}
	defer sinks.Close()
	result, err := dlt.Redrive{
		Topic: topic, Sink: sinks.Named[0].Sink, Filter: filter, Action: flags.acting.action(), Rate: flags.rate, KeepHeaders: flags.keepHeaders,
	}.Run(ctx)
	if printed := c.printRedriven(result); printed != nil || err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(c.stderr, "the other letters are still in %s\n", plain(flags.topic))
		}
		return errors.Join(err, printed)
	}
	if len(filter.Refs) > 0 && result == (dlt.Result{}) {
		return fmt.Errorf("%s has none of these letters", plain(flags.topic))
	}
	return lettersLeft(result)
}

func (c *command) printRedriven(result dlt.Result) error {
	if c.json {
		return c.printJSON(result)
	}
	_, err := fmt.Fprintf(c.stdout, "%s redriven\n", human.Letters(result.Redriven))
	return err
}

// lettersLeft tells of chosen letters that did not go back.
func lettersLeft(r dlt.Result) error {
	var left []string
	if r.Refused > 0 {
		left = append(left, fmt.Sprintf("%s refused by the sink, such as %v", human.Letters(r.Refused), r.Refusal))
	}
	if r.Behind > 0 {
		left = append(left, fmt.Sprintf("%s behind one of the same key that stays", human.Letters(r.Behind)))
	}
	if r.NoOrigin > 0 {
		left = append(left, fmt.Sprintf("%s without the header %s, which says where they belong", human.Letters(r.NoOrigin), consumer.HeaderOriginTopic))
	}
	if left == nil {
		return nil
	}
	return errors.New("left in the dead-letter topic: " + plain(strings.Join(left, "; ")))
}
