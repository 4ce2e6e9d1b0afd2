package nats

import (
	"fmt"
	"slices"
	"strings"

	"github.com/postrider/postrider/consumer"
)

// durable is a consumer of the stream by which the source reads.
type durable struct {
	name     string
	subjects []string
}

// durables returns what to read by: Consumer, and beside it one consumer for each delay of the retry topics. One consumer for all would
// be filled by messages that wait for their time: the server gives a consumer's messages in the order of the stream. That of
// a delay is never held up by itself, because its messages become due in the order in which they come. All other subjects
// share Consumer, so that one that exists keeps its position.
func (c SourceConfig) durables() []durable {
	all := []durable{{name: c.Consumer}}
	for _, subject := range c.Subjects {
		name := c.lane(subject)
		i := slices.IndexFunc(all, func(d durable) bool { return d.name == name })
		if i < 0 {
			i = len(all)
			all = append(all, durable{name: name})
		}
		all[i].subjects = append(all[i].subjects, subject)
	}
	if len(all[0].subjects) == 0 { // everything, or only retry topics
		return []durable{{c.Consumer, c.Subjects}}
	}
	return all
}

// lane names the lane of a subject, which is the consumer that it has unless it comes by a wildcard.
func (c SourceConfig) lane(subject string) string {
	delay := consumer.RetryDelay(subject)
	if delay == 0 {
		return c.Consumer
	}
	return strings.ReplaceAll(consumer.RetryTopic(c.Consumer, delay), ".", "-")
}

// overlaps returns a subject of one consumer that matches what one of another consumer does. Such messages would come twice.
func overlaps(all []durable) error {
	for i, d := range all {
		for _, other := range all[i+1:] {
			for _, a := range d.subjects {
				for _, b := range other.subjects {
					if overlap(a, b) {
						return fmt.Errorf("subjects %q and %q: the first one has what is on the retry topic too: name what it is to match", a, b)
					}
				}
			}
		}
	}
	return nil
}

// overlap reports whether a message can match both subjects.
func overlap(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		switch {
		case as[i] == ">" || bs[i] == ">":
			return true
		case as[i] != bs[i] && as[i] != "*" && bs[i] != "*":
			return false
		}
	}
	return len(as) == len(bs)
}
