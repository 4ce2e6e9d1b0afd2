package wiring

import (
	"context"
	"slices"
	"strings"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/kafka"
	"github.com/postrider/postrider/nats"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/rabbitmq"
	"github.com/postrider/postrider/redis"
	"github.com/postrider/postrider/sink/webhook"
)

// checker is a sink that can look at what it needs.
type checker interface {
	Check(ctx context.Context, topics []string) []operator.Finding
}

var (
	_ checker = (*kafka.Sink)(nil)
	_ checker = (*nats.Sink)(nil)
	_ checker = (*rabbitmq.Sink)(nil)
	_ checker = (*redis.Sink)(nil)
	_ checker = (*webhook.Sink)(nil)
)

// Line writes a finding as one line, without its level.
func Line(f operator.Finding) string {
	line := f.Subject + ": " + f.Message
	if f.Hint != "" {
		line += " (" + f.Hint + ")"
	}
	return strings.Join(strings.Fields(line), " ") // drivers' errors have several lines
}

// Check looks at each sink and at the topics that the routes name for it. Topics that depend on the event are not
// looked at. The routes are those of config.Config.Deliveries.
func (s *Sinks) Check(ctx context.Context, routes []config.Route) []operator.Finding {
	var findings []operator.Finding
	for _, named := range s.Named {
		sink, ok := named.Sink.(checker)
		if !ok {
			findings = append(findings, operator.OK("sink "+named.Name, "has nothing to look at"))
			continue
		}
		topics, open := topicsOf(named.Name, routes)
		found := sink.Check(ctx, topics)
		for _, template := range open {
			found = append(found, operator.OK("topic "+template, "not checked: it depends on the event; a topic that is missing shows when an event for it is sent"))
		}
		for _, f := range found {
			f.Subject = "sink " + named.Name + ", " + f.Subject
			findings = append(findings, f)
		}
	}
	return findings
}

// CheckRoutes looks at what the routes make of each other.
func CheckRoutes(c *config.Config) (findings []operator.Finding) {
	for _, d := range c.Destinations {
		if c.IsDirect(d.Sink) {
			findings = append(findings, operator.Warning("routes to sink "+d.Sink,
				"some lead to it alone and some to several sinks: events of one key that come both ways have no common order there",
				"let all events of a key take one of both ways: write sinks: ["+d.Sink+"] instead of sink: "+d.Sink))
		}
	}
	return findings
}

// topicsOf lists the topics that the routes name for a sink, and the templates whose topic depends on the event.
func topicsOf(sink string, routes []config.Route) (topics, open []string) {
	for _, r := range routes {
		if r.Sink != sink {
			continue
		}
		topic := r.Topic
		for field, pattern := range map[string]string{"{aggregate_type}": r.AggregateType, "{event_type}": r.EventType} {
			if pattern != "" && !strings.ContainsAny(pattern, `*?[\`) {
				topic = strings.ReplaceAll(topic, field, pattern)
			}
		}
		if strings.Contains(topic, "{") {
			open = append(open, topic)
		} else {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	slices.Sort(open)
	return slices.Compact(topics), slices.Compact(open)
}
