package mongo

import (
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// document is an event as it stands in the outbox. What is not set is left out. A JSON payload is a string, which people
// can read in the database, any other is binary data. Both keep its exact bytes.
type document struct {
	ID               bson.ObjectID   `bson:"_id"`
	EventID          string          `bson:"event_id"`
	AggregateType    string          `bson:"aggregate_type"`
	AggregateID      string          `bson:"aggregate_id"`
	EventType        string          `bson:"event_type"`
	AggregateVersion *int64          `bson:"aggregate_version,omitempty"`
	Topic            string          `bson:"topic,omitempty"`
	Payload          any             `bson:"payload"`
	ContentType      string          `bson:"content_type"`
	Headers          any             `bson:"headers,omitempty"`
	DedupKey         string          `bson:"dedup_key,omitempty"`
	Status           postrider.State `bson:"status"`
	RetryCount       int             `bson:"retry_count"`
	Waiting          bool            `bson:"waiting"` // it is scheduled, or failed and is to be tried again
	NextAttemptAt    time.Time       `bson:"next_attempt_at"`
	LastError        string          `bson:"last_error,omitempty"`
	Shard            int             `bson:"shard"`
	PublishedTo      string          `bson:"published_to,omitempty"`
	CreatedAt        time.Time       `bson:"created_at"`
	PublishedAt      *time.Time      `bson:"published_at,omitempty"`
	ClaimToken       string          `bson:"claim_token,omitempty"`
	ProcessingUntil  *time.Time      `bson:"processing_until,omitempty"`
}

// event reads a document for the relay. One that cannot be read is malformed; what can be read of it is there all the same.
func event(raw bson.Raw, now time.Time) relay.Event {
	var d document
	err := bson.Unmarshal(raw, &d)
	if err != nil {
		d = legible(raw)
	}
	return d.event(d.ID.Hex(), now, err)
}

// event is the document as the relay knows it, under an outbox id. malformed says why it cannot be sent.
func (d document) event(id string, now time.Time, malformed error) relay.Event {
	e := relay.Event{
		ID:               id,
		EventID:          d.EventID,
		Shard:            d.Shard,
		AggregateType:    d.AggregateType,
		AggregateID:      d.AggregateID,
		EventType:        d.EventType,
		AggregateVersion: d.AggregateVersion,
		Topic:            d.Topic,
		ContentType:      d.ContentType,
		RetryCount:       d.RetryCount,
	}
	if !d.CreatedAt.IsZero() {
		e.Age = max(now.Sub(d.CreatedAt), 0)
	}
	if malformed == nil {
		var payloadErr, headersErr error
		e.Payload, payloadErr = payloadOf(d.Payload)
		e.Headers, headersErr = headersOf(d.Headers)
		malformed = errors.Join(payloadErr, headersErr)
	}
	e.Malformed = malformed
	return e
}

// legible reads from a document what identifies, orders and routes its event, where that has the right types.
func legible(raw bson.Raw) (d document) {
	d.ID, _ = raw.Lookup("_id").ObjectIDOK()
	shard, _ := raw.Lookup("shard").AsInt64OK()
	d.Shard = int(shard)
	d.EventID, _ = raw.Lookup("event_id").StringValueOK()
	d.AggregateType, _ = raw.Lookup("aggregate_type").StringValueOK()
	d.AggregateID, _ = raw.Lookup("aggregate_id").StringValueOK()
	d.EventType, _ = raw.Lookup("event_type").StringValueOK()
	if version, ok := raw.Lookup("aggregate_version").AsInt64OK(); ok {
		d.AggregateVersion = &version
	}
	return d
}

func payloadOf(value any) ([]byte, error) {
	switch payload := value.(type) {
	case string:
		return []byte(payload), nil
	case bson.Binary:
		return payload.Data, nil
	default:
		return nil, fmt.Errorf("payload is a %T: it must be a string or binary data", value)
	}
}

// headersOf is strict: a value that is not a string, null among them, is no header.
func headersOf(value any) (map[string]string, error) {
	if value == nil {
		return nil, nil
	}
	if ready, ok := value.(map[string]string); ok {
		return ready, nil
	}
	fields, ok := value.(bson.D)
	if !ok {
		return nil, fmt.Errorf("headers are a %T: they must be a document of strings", value)
	}
	headers := make(map[string]string, len(fields))
	for _, field := range fields {
		text, ok := field.Value.(string)
		if !ok {
			return nil, fmt.Errorf("headers are no document of strings: %q is a %T", field.Key, field.Value)
		}
		headers[field.Key] = text
	}
	return headers, nil
}

// row reads a document for operators. What a relay would call malformed is left out.
func row(raw bson.Raw) operator.Row {
	var d document
	if err := bson.Unmarshal(raw, &d); err != nil {
		d = legible(raw)
		status, _ := raw.Lookup("status").StringValueOK()
		d.Status = postrider.State(status)
	}
	return d.row(d.ID.Hex())
}

// row is the document as operators see it, under an outbox id.
func (d document) row(id string) operator.Row {
	shard := d.Shard
	r := operator.Row{
		ID:               id,
		EventID:          d.EventID,
		AggregateType:    d.AggregateType,
		AggregateID:      d.AggregateID,
		EventType:        d.EventType,
		AggregateVersion: d.AggregateVersion,
		Topic:            d.Topic,
		ContentType:      d.ContentType,
		DedupKey:         d.DedupKey,
		Status:           d.Status,
		RetryCount:       d.RetryCount,
		NextAttemptAt:    d.NextAttemptAt.UTC(),
		LastError:        d.LastError,
		Shard:            &shard,
		PublishedTo:      d.PublishedTo,
		CreatedAt:        d.CreatedAt.UTC(),
		PublishedAt:      d.PublishedAt,
	}
	r.Payload, _ = payloadOf(d.Payload)
	r.Headers, _ = headersOf(d.Headers)
	if r.PublishedAt != nil {
		at := r.PublishedAt.UTC()
		r.PublishedAt = &at
	}
	return r
}
