package mongo

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/operator"
)

// newest is how many of their documents, the newest, verifyTheirs looks at.
const newest = 10_000

// verifyTheirs looks at what a collection that somebody else designed leaves to be desired.
func (s *Store) verifyTheirs(ctx context.Context) (findings []operator.Finding, err error) {
	subject := "collection " + s.events.Name()
	served, err := s.isServed(ctx)
	if err != nil {
		return nil, err
	}
	if !served {
		findings = append(findings, operator.Warning(subject, "no index leads to the events that wait, in their order; every read goes through more documents than it returns",
			"run in mongosh: "+s.usefulIndex()))
	}
	if s.theirs.Order == "_id" {
		findings = append(findings, operator.Warning(subject, "the order is that of _id: ObjectIds that two processes made within one second are in no order, and other ids need not ascend at all, "+
			"so that the order of the events of a key is only as good as that", "name the field of the outbox order, if there is a better one"))
	}
	known, err := s.hasKnownWord(ctx)
	if err != nil {
		return nil, err
	}
	if !known {
		return append(findings, operator.Problem(subject, fmt.Sprintf("no document has a word of the map in the field %s: nothing would ever be published", s.theirs.Status),
			"correct columns.status, or the words in status")), nil
	}
	odd, err := s.oddTheirs(ctx)
	return append(findings, odd.findings(s.events.Name())...), err
}

// hasKnownWord tells whether some document is in a state; an empty collection has no other.
func (s *Store) hasKnownWord(ctx context.Context) (bool, error) {
	one := options.Find().SetLimit(1).SetProjection(bson.M{"_id": 1})
	known, err := find[bson.Raw](ctx, s.events, s.theirs.belongs(bson.M{s.theirs.Status: bson.M{"$in": s.theirs.Words.known()}}), one)
	if err != nil || len(known) > 0 {
		return true, err
	}
	some, err := find[bson.Raw](ctx, s.events, s.theirs.belongs(), one)
	return len(some) == 0, err
}

// readOrder are the fields of the index that serves a read: what is equal, what is sorted by, what is compared.
func (s *Store) readOrder() bson.D {
	fields := append(ascending(s.theirs.Status), s.theirs.order()...)
	if s.theirs.NextAttemptAt != "" {
		fields = append(fields, ascending(s.theirs.NextAttemptAt)...)
	}
	return fields
}

// usefulIndex is the command that creates the index that serves a read.
func (s *Store) usefulIndex() string {
	return fmt.Sprintf("db.getCollection(%q).createIndex(%s)", s.events.Name(), inShell(s.readOrder()))
}

// isServed tells whether an index begins with the status and the order.
func (s *Store) isServed(ctx context.Context) (bool, error) {
	have, err := foundIndexes(ctx, s.events)
	wanted := append([]string{s.theirs.Status}, s.theirs.Order)
	for _, i := range have {
		var fields []string
		for _, field := range i.Key {
			fields = append(fields, field.Key)
		}
		if len(fields) >= len(wanted) && slices.Equal(fields[:len(wanted)], wanted) && len(i.Only) == 0 {
			return true, err
		}
	}
	return false, err
}

// oddTheirs looks for documents that no relay will ever pick up, or can send.
func (s *Store) oddTheirs(ctx context.Context) (oddities, error) {
	t, odd := s.theirs, oddities{}
	look := func(what string, condition bson.M) error {
		docs, err := aggregate[bson.Raw](ctx, s.events, bson.A{
			bson.M{"$sort": bson.M{"_id": -1}},
			bson.M{"$limit": newest},
			bson.M{"$match": t.belongs(condition)},
			bson.M{"$limit": looked},
			bson.M{"$project": bson.M{"_id": 1}},
		})
		for _, raw := range docs {
			odd.add(what, raw)
		}
		return err
	}
	err := look(fmt.Sprintf("in a state that is none, by the word in %s, and left alone", t.Status), bson.M{t.Status: bson.M{"$nin": t.Words.known()}})
	for what, condition := range t.unsendable() {
		if err == nil {
			err = look(what, with(t.isPending(), condition))
		}
	}
	if err == nil && t.ProcessingUntil != "" {
		err = look(fmt.Sprintf("claimed without a date in %s, so that no relay takes them over", t.ProcessingUntil),
			with(t.isClaimed(), bson.M{t.ProcessingUntil: bson.M{"$not": bson.M{"$type": "date"}}}))
	}
	if err == nil && t.ProcessingUntil == "" && t.Words.Processing != "" {
		err = look("PROCESSING, which is left to those who made it so", t.isClaimed())
	}
	return odd, err
}

// unsendable are conditions under which a document that waits becomes DEAD, and what to call it.
func (t *theirs) unsendable() map[string]bson.M {
	none := func(term string) bson.M { return bson.M{"$expr": bson.M{"$eq": bson.A{expression(term), ""}}} }
	return map[string]bson.M{
		fmt.Sprintf("without a key in %s, so that they become DEAD", t.AggregateID):       none(t.AggregateID),
		fmt.Sprintf("without an event type in %s, so that they become DEAD", t.EventType): none(t.EventType),
		fmt.Sprintf("without a text, a document or binary data in %s, so that they become DEAD", t.Payload): {
			t.Payload: bson.M{"$not": bson.M{"$type": bson.A{"string", "object", "binData"}}},
		},
	}
}
