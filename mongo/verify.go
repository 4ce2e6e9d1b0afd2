package mongo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
)

// Verify looks for what is wrong with the server and the collections, without changing anything and without scanning
// them. It reports errors as findings; what cannot be looked at because of an earlier finding is left out.
func (s *Store) Verify(ctx context.Context) []operator.Finding {
	found, err := lookAt(ctx, s.events.Database())
	if err != nil {
		return []operator.Finding{s.problem("database", s.fail("connect", err))}
	}
	findings := []operator.Finding{s.verifyServer(found)}
	if findings[0].Level == operator.LevelError {
		return findings
	}
	subject := "collection " + s.events.Name()
	if s.theirs != nil {
		if err := s.findTheirs(ctx, "check"); err != nil {
			return append(findings, s.problem(subject, err))
		}
	}
	layout, err := s.fits(ctx, "check")
	if err != nil {
		return append(findings, s.problem(subject, err))
	}
	for _, verify := range s.verifications() {
		more, err := verify(ctx)
		findings = append(findings, more...)
		if err != nil {
			return append(findings, s.problem(subject, s.fail("check", err)))
		}
	}
	if !slices.ContainsFunc(findings, func(f operator.Finding) bool { return f.Level == operator.LevelError }) {
		findings = append(findings, operator.OK(subject, fmt.Sprintf("version %d, %d shards", layout.Version, layout.Shards)))
	}
	return findings
}

func (s *Store) verifications() []func(context.Context) ([]operator.Finding, error) {
	if s.theirs != nil {
		return []func(context.Context) ([]operator.Finding, error){s.verifyIndexes, s.verifyPrivileges, s.verifyTheirs}
	}
	return []func(context.Context) ([]operator.Finding, error){s.verifyIndexes, s.verifyRules, s.verifyPrivileges, s.verifyDocuments}
}

// problem turns an error into a finding.
func (s *Store) problem(subject string, err error) operator.Finding {
	described, ok := errors.AsType[*Error](err)
	if !ok {
		return operator.Problem(subject, err.Error(), "")
	}
	message := described.Err.Error()
	if described.Cause != nil {
		message = described.Cause.Error() + ": " + message
	}
	return operator.Problem(subject, message, described.Hint)
}

func (s *Store) verifyServer(found server) operator.Finding {
	if err := found.problem(); err != nil {
		return s.problem("database", s.refuse("check", err))
	}
	if found.compatible {
		return operator.Warning("database", found.version+" has no transactions: events are written although their transaction is rolled back, and settles are not atomic",
			"use MongoDB, as a replica set, for anything but development")
	}
	return operator.OK("database", found.version)
}

func (s *Store) verifyIndexes(ctx context.Context) (findings []operator.Finding, err error) {
	have := map[string]map[string]foundIndex{}
	for _, i := range s.indexes() {
		c := i.of(s.collections)
		if have[c.Name()] == nil {
			if have[c.Name()], err = foundIndexes(ctx, c); err != nil {
				return nil, err
			}
		}
		subject := fmt.Sprintf("index %s of %s", i.name, c.Name())
		found, exists := have[c.Name()][i.name]
		switch {
		case !exists:
			findings = append(findings, operator.Problem(subject, "is missing", "run in mongosh: "+i.command(c.Name())))
		case !i.fits(found):
			findings = append(findings, operator.Problem(subject, "is not as this version needs it",
				fmt.Sprintf("run in mongosh: db.getCollection(%q).dropIndex(%q); %s", c.Name(), i.name, i.command(c.Name()))))
		}
	}
	return findings, nil
}

func (s *Store) verifyRules(ctx context.Context) ([]operator.Finding, error) {
	if known, err := hasRules(ctx, s.events); err != nil || known {
		return nil, err
	}
	return []operator.Finding{operator.Warning("collection "+s.events.Name(),
		"has no validator: an event with a wrong field can wait for ever without being seen", "run `postrider init`")}, nil
}

// foundIndex is an index as the server describes it.
type foundIndex struct {
	Name    string `bson:"name"`
	Key     bson.D `bson:"key"`
	Unique  bool   `bson:"unique"`
	Only    bson.M `bson:"partialFilterExpression"`
	Expires int64  `bson:"expireAfterSeconds"`
}

func foundIndexes(ctx context.Context, c *driver.Collection) (map[string]foundIndex, error) {
	cursor, err := c.Indexes().List(ctx)
	if err != nil {
		return nil, err
	}
	var list []foundIndex
	if err := cursor.All(ctx, &list); err != nil {
		return nil, err
	}
	byName := map[string]foundIndex{}
	for _, one := range list {
		byName[one.Name] = one
	}
	return byName, nil
}

func (i index) fits(found foundIndex) bool {
	var fields []string
	for _, field := range found.Key {
		fields = append(fields, field.Key)
	}
	expires := int64(0)
	if i.forget {
		expires = forgetAfter
	}
	return slices.Equal(fields, i.keys) && found.Unique == i.unique && found.Expires == expires &&
		reflect.DeepEqual(plain(found.Only), plain(i.only))
}

// plain is a condition as it is after a way through the server.
func plain(condition bson.M) (same bson.M) {
	if len(condition) == 0 {
		return nil
	}
	raw, err := bson.Marshal(condition)
	if err == nil {
		err = bson.Unmarshal(raw, &same)
	}
	if err != nil {
		panic(err) // conditions hold what BSON can
	}
	return same
}

// command is what creates the index, for people.
func (i index) command(collection string) string {
	o := bson.D{{Key: "name", Value: i.name}}
	if i.unique {
		o = append(o, bson.E{Key: "unique", Value: true})
	}
	if i.only != nil {
		o = append(o, bson.E{Key: "partialFilterExpression", Value: i.only})
	}
	if i.forget {
		o = append(o, bson.E{Key: "expireAfterSeconds", Value: forgetAfter})
	}
	return fmt.Sprintf("db.getCollection(%q).createIndex(%s, %s)", collection, inShell(ascending(i.keys...)), inShell(o))
}

func inShell(doc bson.D) string {
	text, err := bson.MarshalExtJSON(doc, false, false)
	if err != nil {
		panic(err) // names, numbers and conditions can always be written
	}
	return string(text)
}

// looked is how many documents verifyDocuments looks at, at the start of the outbox and for each kind.
const looked = 1000

// verifyDocuments looks for documents that no relay will ever pick up or clean.
func (s *Store) verifyDocuments(ctx context.Context) (findings []operator.Finding, err error) {
	odd := oddities{}
	first, err := find[bson.Raw](ctx, s.events, bson.M{}, options.Find().SetSort(ascending("_id")).SetLimit(looked).
		SetProjection(bson.M{"status": 1, "waiting": 1, "published_at": 1, "shard": 1}))
	if err != nil {
		return nil, err
	}
	for _, raw := range first {
		odd.add(oddity(raw, s.known().Shards), raw)
	}
	now, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	processing, err := find[bson.Raw](ctx, s.events, isProcessing, options.Find().SetLimit(looked).SetSort(ascending("processing_until", "_id")))
	if err != nil {
		return nil, err
	}
	for _, raw := range processing {
		odd.add(claimOddity(raw, now), raw)
	}
	late, err := find[bson.Raw](ctx, s.events, with(waiting, bson.M{"shard": bson.M{"$gte": 0}, "next_attempt_at": bson.M{"$gt": now.Add(tooLate)}}),
		options.Find().SetLimit(looked))
	for _, raw := range late {
		odd.add("PENDING but not due for more than a year", raw)
	}
	return odd.findings(s.events.Name()), err
}

// claimOddity says what is wrong with a claim; empty when nothing is.
func claimOddity(raw bson.Raw, now time.Time) string {
	_, hasToken := raw.Lookup("claim_token").StringValueOK()
	until, hasTime := raw.Lookup("processing_until").TimeOK()
	switch {
	case !hasToken || !hasTime:
		return "PROCESSING without a claim_token and a processing_until, so that no relay takes them"
	case until.Before(now.Add(-time.Hour)):
		return "PROCESSING although their claims ran out more than an hour ago, because no relay is at work"
	}
	return ""
}

// tooLate is longer than any schedule or retry asks for.
const tooLate = 366 * 24 * time.Hour

// oddity says what is wrong with a document; empty when nothing is.
func oddity(raw bson.Raw, shards int) string {
	status, _ := raw.Lookup("status").StringValueOK()
	_, isBool := raw.Lookup("waiting").BooleanOK()
	_, isDate := raw.Lookup("published_at").TimeOK()
	shard, isNumber := raw.Lookup("shard").AsInt64OK()
	pending := status == string(postrider.StatePending)
	switch {
	case !slices.Contains(postrider.States(), postrider.State(status)):
		return "in a state that is none"
	case pending && !isBool:
		return "PENDING without a waiting of true or false, so that no read finds them"
	case pending && (!isNumber || shard < 0 || shard >= int64(shards)):
		return "PENDING in a shard that is none, so that no read finds them"
	case status == string(postrider.StatePublished) && !isDate:
		return "PUBLISHED without published_at, which cleaning leaves alone"
	}
	return ""
}

// oddities are documents by what is wrong with them.
type oddities map[string][]bson.RawValue

func (o oddities) add(what string, raw bson.Raw) {
	if what != "" {
		o[what] = append(o[what], raw.Lookup("_id"))
	}
}

func (o oddities) findings(collection string) (findings []operator.Finding) {
	for what, ids := range o {
		findings = append(findings, operator.Warning("collection "+collection, fmt.Sprintf("%d or more events are %s", len(ids), what),
			fmt.Sprintf("look at the one with the _id %s and correct them in mongosh", ids[0])))
	}
	slices.SortFunc(findings, func(a, b operator.Finding) int { return strings.Compare(a.Message, b.Message) })
	return findings
}
