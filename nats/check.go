package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/operator"
)

// shortWindow is a duplicate window that a common outage outlasts. It is JetStream's default.
const shortWindow = 2 * time.Minute

// Check looks at everything that publishing to the subjects needs: the connection and login, JetStream, and for each
// subject a stream that keeps its messages. It returns within about ten seconds for each thing that does not answer.
func (s *Sink) Check(ctx context.Context, subjects []string) []operator.Finding {
	if err := connected(ctx, s.conn); err != nil {
		return []operator.Finding{operator.Problem("nats server", err.Error(), "start the server, or correct the addresses or the login")}
	}
	findings := []operator.Finding{operator.OK("nats server", "connected to "+s.conn.ConnectedUrlRedacted())}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := s.js.AccountInfo(ctx); err != nil {
		return append(findings, operator.Problem("jetstream", err.Error(), "enable JetStream on the server and for this account"))
	}
	for _, subject := range subjects {
		findings = append(findings, s.checkSubject(ctx, subject)...)
	}
	return findings
}

func (s *Sink) checkSubject(ctx context.Context, subject string) []operator.Finding {
	about := "subject " + subject
	if err := checkSubject(subject); err != nil {
		return []operator.Finding{operator.Problem(about, err.Error(), "correct the topic of the route")}
	}
	name, err := s.js.StreamNameBySubject(ctx, subject)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return []operator.Finding{operator.Problem(about, "no stream takes this subject", "create a stream for it, for example with `nats stream add`")}
	}
	if err != nil {
		return []operator.Finding{operator.Problem(about, "asking for its stream: "+err.Error(), "let this login use the JetStream API")}
	}
	stream, err := s.js.Stream(ctx, name)
	if err != nil {
		return []operator.Finding{operator.Problem(about, "reading stream "+name+": "+err.Error(), "let this login use the JetStream API")}
	}
	if s.stream != "" && s.stream != name {
		return []operator.Finding{operator.Problem(about, fmt.Sprintf("goes to stream %s, not to %s", name, s.stream), "correct the sink's stream or the stream's subjects")}
	}
	c := stream.CachedInfo().Config
	findings := append(checkStream(c), s.checkReading(ctx, name)...)
	if len(findings) == 0 {
		findings = []operator.Finding{operator.OK(about, fmt.Sprintf("stored by stream %s: %s storage, %d replicas, duplicates recognized for %s", name, c.Storage, c.Replicas, c.Duplicates))}
	}
	return findings
}

// checkReading asks for a message, as Publish does when a stream says that it has seen an event.
func (s *Sink) checkReading(ctx context.Context, stream string) []operator.Finding {
	heard := s.complaints.listen()
	defer heard.stop()
	q := &question{subject: apiSubject("", "MSG.GET", stream), body: `{"seq":1}`}
	s.ask(ctx, heard, []*question{q})
	if _, err := q.holds(""); err != nil {
		return []operator.Finding{operator.Problem("stream "+stream, "whether it still holds an event that it has seen cannot be found out, so an event sent again waits for the end of the duplicate window: "+err.Error(),
			"let this login publish to "+q.subject)}
	}
	return nil
}

// checkStream returns what is wrong with a stream as a place for events.
func checkStream(c jetstream.StreamConfig) []operator.Finding {
	var findings []operator.Finding
	about := "stream " + c.Name
	if c.NoAck {
		findings = append(findings, operator.Problem(about, "acknowledges nothing, so no event would count as published", "set no_ack to false"))
	}
	if c.Storage == jetstream.MemoryStorage {
		findings = append(findings, operator.Warning(about, "keeps acknowledged events in memory only", "use file storage"))
	}
	if c.Retention == jetstream.InterestPolicy {
		findings = append(findings, operator.Warning(about, "drops events for which no consumer exists", "create the consumers first, or use the limits policy"))
	}
	if c.Duplicates <= shortWindow {
		findings = append(findings, operator.Warning(about, fmt.Sprintf("recognizes duplicates for %s only: an event sent again after a longer outage may be stored twice", c.Duplicates),
			"make duplicate_window longer than the outages you expect"))
	}
	return findings
}
