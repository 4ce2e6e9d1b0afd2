package mongo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/postrider/postrider"
)

// theirs is a mapping as the statements use it.
type theirs struct {
	Mapping
	condition bson.M // of their documents that belong to the outbox
	failures  string // the collection of the records
}

func newTheirs(m Mapping, failures string) *theirs {
	condition, err := m.filter()
	if err != nil {
		panic(err) // Open has checked it
	}
	return &theirs{m, condition, failures}
}

// record is what stands in the collection of failures about a document of theirs. It holds while that document is in
// the state TheirState; PROCESSING counts as PENDING.
type record struct {
	ID            any             `bson:"_id"` // that of their document
	AggregateID   string          `bson:"aggregate_id"`
	State         postrider.State `bson:"state"`
	TheirState    postrider.State `bson:"their_state"`
	RetryCount    int             `bson:"retry_count"`
	NextAttemptAt time.Time       `bson:"next_attempt_at"`
	LastError     string          `bson:"last_error"`
}

// belongs selects documents of the outbox for which all conditions hold.
func (t *theirs) belongs(conditions ...bson.M) bson.M {
	all := bson.A{}
	if len(t.condition) > 0 {
		all = append(all, t.condition)
	}
	for _, c := range conditions {
		all = append(all, c)
	}
	if len(all) == 0 {
		return bson.M{}
	}
	return bson.M{"$and": all}
}

// The value of ClaimToken in a document that nobody has claimed. A field that is missing counts as null.
var noToken = bson.A{nil, ""}

func (t *theirs) isOpen() bson.M { return bson.M{t.Status: bson.M{"$in": t.Words.Pending}} }

// isPending selects what nobody has claimed.
func (t *theirs) isPending() bson.M {
	if t.ClaimToken == "" || t.Words.Processing != "" {
		return t.isOpen()
	}
	return with(t.isOpen(), bson.M{t.ClaimToken: bson.M{"$in": noToken}})
}

// isClaimed selects what somebody has claimed, whoever it is.
func (t *theirs) isClaimed() bson.M {
	if t.Words.Processing != "" {
		return bson.M{t.Status: t.Words.Processing}
	}
	if t.ClaimToken == "" {
		return bson.M{t.Status: bson.M{"$in": bson.A{}}}
	}
	return with(t.isOpen(), bson.M{t.ClaimToken: bson.M{"$nin": noToken}})
}

// isDue selects what does not wait for a later time.
func (t *theirs) isDue(now time.Time) bson.M {
	if t.NextAttemptAt == "" {
		return bson.M{}
	}
	return bson.M{t.NextAttemptAt: bson.M{"$not": bson.M{"$gt": now}}}
}

// has selects the documents that can be in a state.
func (t *theirs) has(state postrider.State) bson.M {
	switch state {
	case postrider.StatePending:
		return t.isPending()
	case postrider.StateProcessing:
		return t.isClaimed()
	case postrider.StatePublished:
		return bson.M{t.Status: t.Words.Published}
	case postrider.StateDead:
		return bson.M{t.Status: t.Words.Dead}
	case postrider.StateDiscarded:
		return bson.M{t.Status: t.Words.Discarded}
	}
	return bson.M{t.Status: bson.M{"$in": t.Words.known()}}
}

// order sorts in outbox order.
func (t *theirs) order() bson.D {
	if t.Order == "_id" {
		return ascending("_id")
	}
	return ascending(t.Order, "_id")
}

// rows are the stages that make of their documents such as the outbox of our own holds, and a theirRow out of each.
func (t *theirs) rows() bson.A {
	state := bson.M{"$switch": bson.M{"default": "", "branches": t.states()}}
	held := bson.M{"$eq": bson.A{"$postrider_record.their_state", bson.M{"$cond": bson.A{
		bson.M{"$eq": bson.A{"$postrider_state", postrider.StateProcessing}}, postrider.StatePending, "$postrider_state",
	}}}}
	return bson.A{
		bson.M{"$lookup": bson.M{"from": t.failures, "localField": "_id", "foreignField": "_id", "as": "postrider_record"}},
		bson.M{"$addFields": bson.M{"postrider_record": bson.M{"$first": "$postrider_record"}, "postrider_state": state}},
		bson.M{"$addFields": bson.M{"postrider_holds": held}},
		bson.M{"$project": t.projection()},
	}
}

// states are the cases that tell a state by the words.
func (t *theirs) states() (cases bson.A) {
	is := func(state postrider.State, condition any) {
		cases = append(cases, bson.M{"case": condition, "then": state})
	}
	word := "$" + t.Status
	if t.ClaimToken != "" && t.Words.Processing == "" {
		unclaimed := bson.M{"$in": bson.A{bson.M{"$ifNull": bson.A{"$" + t.ClaimToken, ""}}, bson.A{""}}}
		is(postrider.StateProcessing, bson.M{"$and": bson.A{bson.M{"$in": bson.A{word, t.Words.Pending}}, bson.M{"$not": bson.A{unclaimed}}}})
	}
	is(postrider.StatePending, bson.M{"$in": bson.A{word, t.Words.Pending}})
	for state, text := range map[postrider.State]string{
		postrider.StateProcessing: t.Words.Processing, postrider.StatePublished: t.Words.Published, postrider.StateDead: t.Words.Dead,
	} {
		if text != "" {
			is(state, bson.M{"$eq": bson.A{word, literal(text)}})
		}
	}
	if t.Words.Discarded != t.Words.Dead {
		is(postrider.StateDiscarded, bson.M{"$eq": bson.A{word, literal(t.Words.Discarded)}})
	}
	return cases
}

func (t *theirs) projection() bson.M {
	recorded := func(field string, otherwise any) bson.M {
		return bson.M{"$cond": bson.A{"$postrider_holds", "$postrider_record." + field, otherwise}}
	}
	optional := func(path, to string, otherwise any) any {
		if path == "" {
			return bson.M{"$ifNull": bson.A{otherwise, nil}}
		}
		return bson.M{"$ifNull": bson.A{converted(path, to), otherwise}}
	}
	isOpen := bson.M{"$in": bson.A{"$postrider_state", bson.A{postrider.StatePending, postrider.StateProcessing}}}
	created := optional(t.CreatedAt, "date", idTime)
	headers := bson.A{}
	for name, term := range t.HeaderTerms {
		headers = append(headers, bson.M{"name": literal(name), "value": expression(term)})
	}
	projection := bson.M{
		"_id":            0,
		"ref":            "$_id",
		"event_id":       expression(t.EventID),
		"aggregate_type": expression(t.AggregateType),
		"aggregate_id":   expression(t.AggregateID),
		"event_type":     expression(t.EventType),
		"topic":          literalOr(expression(t.Topic)),
		"content_type":   literalOr(expression(t.ContentType)),
		"dedup_key":      literalOr(expression(t.DedupKey)),
		"payload":        "$" + t.Payload,
		"header_terms":   headers,
		"status": bson.M{"$cond": bson.A{
			bson.M{"$and": bson.A{"$postrider_holds", bson.M{"$ne": bson.A{"$postrider_record.state", postrider.StatePending}}}},
			"$postrider_record.state", "$postrider_state",
		}},
		// A document that waits without a record begins anew, whatever its own count says: somebody has set it back.
		"retry_count":      recorded("retry_count", bson.M{"$cond": bson.A{isOpen, 0, optional(t.RetryCount, "int", 0)}}),
		"next_attempt_at":  optional(t.NextAttemptAt, "date", recorded("next_attempt_at", created)),
		"last_error":       recorded("last_error", optional(t.LastError, "string", literal(""))),
		"claim_token":      literalOr(expression(t.ClaimToken)),
		"processing_until": optional(t.ProcessingUntil, "date", nil),
		"published_to":     optional(t.PublishedTo, "string", literal("")),
		"published_at":     optional(t.PublishedAt, "date", nil),
		"created_at":       created,
		"died_at":          recorded("next_attempt_at", nil),
	}
	if t.Headers != "" {
		projection["headers"] = "$" + t.Headers
	}
	return projection
}

// idTime is the time in an _id, null when it is no ObjectId.
var idTime = bson.M{"$cond": bson.A{bson.M{"$eq": bson.A{bson.M{"$type": "$_id"}, "objectId"}}, bson.M{"$toDate": "$_id"}, nil}}

// literalOr keeps an empty text, as a projection would take it for a path.
func literalOr(expression any) any {
	if text, ok := expression.(string); ok {
		return literal(text)
	}
	return expression
}

// theirRow is what rows makes of a document of theirs.
type theirRow struct {
	document
	ref       any       // its _id
	malformed error     // why its event cannot be sent, if it cannot
	diedAt    time.Time // when a relay made it DEAD, for one that is DEAD; zero where no relay did
}

// newTheirRow reads a row, and completes it with what only the relay can tell.
func newTheirRow(raw bson.Raw, t *theirs, shards int) (r theirRow, err error) {
	var more struct {
		Ref         any       `bson:"ref"`
		HeaderTerms []header  `bson:"header_terms"`
		DiedAt      time.Time `bson:"died_at"`
	}
	if err := errors.Join(bson.Unmarshal(raw, &r.document), bson.Unmarshal(raw, &more)); err != nil {
		return r, err
	}
	r.ref, r.diedAt = more.Ref, more.DiedAt
	r.malformed = r.complete(t, more.HeaderTerms, shards)
	return r, nil
}

// header is a header that has a term of its own.
type header struct {
	Name  string `bson:"name"`
	Value string `bson:"value"`
}

// theirRows runs a pipeline that ends with rows.
func (s *Store) theirRows(ctx context.Context, pipeline bson.A) ([]theirRow, error) {
	docs, err := aggregate[bson.Raw](ctx, s.events, pipeline)
	if err != nil {
		return nil, err
	}
	rows := make([]theirRow, len(docs))
	for i, raw := range docs {
		if rows[i], err = newTheirRow(raw, s.theirs, s.known().Shards); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (r *theirRow) complete(t *theirs, terms []header, shards int) error {
	r.Shard = shardOf(r.AggregateID, shards)
	headersErr := r.addHeaders(terms)
	payloadErr := r.takePayload(t.Payload)
	switch {
	case r.AggregateID == "":
		return fmt.Errorf("it has no key: %s is missing, null or empty", t.AggregateID)
	case r.EventID == "":
		return fmt.Errorf("it has no event id: %s is missing, null or empty", t.EventID)
	case r.EventType == "":
		return fmt.Errorf("it has no event type: %s is missing, null or empty", t.EventType)
	}
	return errors.Join(payloadErr, headersErr)
}

// takePayload makes the payload a string or binary data, and sets the content type where theirs has none.
func (r *theirRow) takePayload(field string) error {
	contentType := "application/json"
	switch payload := r.Payload.(type) {
	case bson.D:
		text, err := bson.MarshalExtJSON(payload, false, false)
		if err != nil {
			return fmt.Errorf("its payload, %s, cannot be written as JSON: %w", field, err)
		}
		r.Payload = string(text)
	case bson.Binary:
		contentType = "application/octet-stream"
	case string:
		if strings.HasSuffix(orElse(r.ContentType, contentType), "json") && !json.Valid([]byte(payload)) {
			return fmt.Errorf("its payload, %s, is no JSON; map ContentType if it need not be", field)
		}
	default:
		r.Payload = ""
		return fmt.Errorf("its payload, %s, is %s: it must be a document, a string or binary data", field, kindOf(payload))
	}
	r.ContentType = orElse(r.ContentType, contentType)
	return nil
}

func kindOf(value any) string {
	if value == nil {
		return "missing or null"
	}
	return fmt.Sprintf("a %T", value)
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// addHeaders adds the headers that have terms of their own. They take precedence over those of the document.
func (r *theirRow) addHeaders(terms []header) error {
	headers, err := headersOf(r.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	for _, h := range terms {
		if h.Value != "" {
			headers[h.Name] = h.Value
		}
	}
	r.Headers = nil
	if len(headers) > 0 {
		r.Headers = headers
	}
	return err
}

// idText is an _id as the relay knows it: the hex of an ObjectId, otherwise extended JSON.
func idText(id any) string {
	if object, ok := id.(bson.ObjectID); ok {
		return object.Hex()
	}
	text, err := bson.MarshalExtJSON(bson.D{{Key: "", Value: id}}, true, false)
	if err != nil {
		return fmt.Sprint(id) // nothing that a server sends
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(text), `{"":`), "}")
}

// idValue is the inverse of idText.
func idValue(text string) (any, error) {
	if object, err := bson.ObjectIDFromHex(text); err == nil {
		return object, nil
	}
	var doc bson.D
	if !json.Valid([]byte(text)) || bson.UnmarshalExtJSON([]byte(`{"":`+text+`}`), true, &doc) != nil {
		return nil, fmt.Errorf("%q is no id of this outbox", text)
	}
	return doc[0].Value, nil
}
