package mongo

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/relay"
)

// version is the version of the collections that this code works with.
const version = 2

// layoutID is the _id of the only document of the schema collection.
const layoutID = "layout"

// layout is what Init recorded about the collections, and the server that keeps them.
type layout struct {
	Version int    `bson:"version"`
	Outbox  string `bson:"outbox"`
	Shards  int    `bson:"shards"`
	Mapped  bool   `bson:"mapped"` // it is a collection that somebody else designed

	server server
}

// Init creates the collections and indexes, or completes them. It may run again and at the same time as others.
func (s *Store) Init(ctx context.Context) error {
	const op = "init"
	found, err := lookAt(ctx, s.events.Database())
	if err != nil {
		return s.fail(op, err)
	}
	if err := found.problem(); err != nil {
		return s.refuse(op, err)
	}
	wanted := s.ours()
	if s.theirs != nil {
		wanted = s.beside()
		if err := s.findTheirs(ctx, op); err != nil {
			return err
		}
	}
	for _, c := range wanted {
		if err := s.create(ctx, c); err != nil {
			return s.fail(op, err)
		}
	}
	for _, i := range s.indexes() {
		if _, err := i.of(s.collections).Indexes().CreateOne(ctx, i.model()); err != nil {
			return s.fail(op, err)
		}
	}
	recorded := bson.M{"outbox": s.events.Name(), "shards": s.config.Shards, "mapped": s.theirs != nil}
	_, err = s.schema.UpdateByID(ctx, layoutID, bson.M{"$setOnInsert": recorded, "$max": bson.M{"version": version}}, options.UpdateOne().SetUpsert(true))
	if err != nil && !driver.IsDuplicateKeyError(err) {
		return s.fail(op, err)
	}
	_, err = s.fits(ctx, op)
	return err
}

// findTheirs refuses a collection that is not there: nobody but its application creates it.
func (s *Store) findTheirs(ctx context.Context, op string) error {
	found, err := s.events.Database().ListCollectionNames(ctx, bson.M{"name": s.events.Name()})
	if err != nil || len(found) > 0 {
		return s.fail(op, err)
	}
	return s.unfit(op, "is its name right, and that of the database?", "collection %s does not exist", s.events.Name())
}

// create creates a collection where it is missing, and gives the outbox its rules.
func (s *Store) create(ctx context.Context, c *driver.Collection) error {
	if err := createCollection(ctx, c); err != nil || c != s.events {
		return err
	}
	return giveRules(ctx, c, rules)
}

// createCollection creates a collection where it is missing.
func createCollection(ctx context.Context, c *driver.Collection) error {
	err := c.Database().CreateCollection(ctx, c.Name())
	if server, ok := errors.AsType[driver.ServerError](err); ok && server.HasErrorCode(codeNamespaceExists) {
		return nil
	}
	return err
}

// fits returns the layout, once it was found to fit this code.
func (s *Store) fits(ctx context.Context, op string) (layout, error) {
	if known := s.layout.Load(); known != nil {
		return *known, nil
	}
	found, err := lookAt(ctx, s.events.Database())
	if err != nil {
		return layout{}, s.fail(op, err)
	}
	if err := found.problem(); err != nil {
		return layout{}, s.refuse(op, err)
	}
	l := layout{server: found}
	err = s.schema.FindOne(ctx, bson.M{"_id": layoutID}).Decode(&l)
	switch {
	case errors.Is(err, driver.ErrNoDocuments):
		return layout{}, s.unfit(op, hints[relay.ErrSchema], "the collections are not complete")
	case err != nil:
		return layout{}, s.fail(op, err)
	case l.Outbox != s.events.Name():
		return layout{}, s.unfit(op, "rename one of the two outboxes", "%s belongs to the outbox %q", s.schema.Name(), l.Outbox)
	case l.Mapped != (s.theirs != nil):
		return layout{}, s.unfit(op, "give it a mapping if it was set up with one, and none otherwise", "%s was set up with mapped: %v", s.schema.Name(), l.Mapped)
	case l.Version > version:
		return layout{}, s.unfit(op, "use a newer Postrider", "they have version %d, and this Postrider knows no more than version %d", l.Version, version)
	case l.Version < version:
		return layout{}, s.unfit(op, hints[relay.ErrSchema], "they have version %d, and this Postrider needs version %d", l.Version, version)
	}
	s.layout.Store(&l)
	return l, nil
}

// known is the layout after fits.
func (s *Store) known() layout { return *s.layout.Load() }

// refuse describes a server that cannot keep an outbox.
func (s *Store) refuse(op string, err error) error {
	cause := relay.ErrSchema
	if errors.Is(err, ErrNoTransactions) {
		cause = ErrNoTransactions
	}
	return &Error{Op: op, Collection: s.events.Name(), Cause: cause, Err: err, Hint: hints[cause]}
}

// now asks for the server's time.
func (s *Store) now(ctx context.Context) (time.Time, error) {
	docs, err := aggregate[struct {
		Now time.Time `bson:"now"`
	}](ctx, s.schema, nowPipeline)
	if err != nil {
		return time.Time{}, err
	}
	if len(docs) == 0 {
		return time.Time{}, s.unfit("read the clock", hints[relay.ErrSchema], "the document %q of %s is gone", layoutID, s.schema.Name())
	}
	return docs[0].Now, nil
}

// isLayout is the stage that begins with the layout, the one document that is always there.
var isLayout = bson.M{"$match": bson.M{"_id": layoutID}}

var nowPipeline = bson.A{
	isLayout,
	bson.M{"$project": bson.M{"now": "$$NOW"}},
}

// aggregate runs a pipeline and decodes all that it yields.
func aggregate[T any](ctx context.Context, c *driver.Collection, pipeline bson.A) (docs []T, err error) {
	cursor, err := c.Aggregate(ctx, pipeline)
	if err != nil {
		return nil, err
	}
	err = cursor.All(ctx, &docs)
	return docs, err
}

// find runs a query and decodes all that it yields.
func find[T any](ctx context.Context, c *driver.Collection, filter bson.M, opts ...options.Lister[options.FindOptions]) (docs []T, err error) {
	cursor, err := c.Find(ctx, filter, opts...)
	if err != nil {
		return nil, err
	}
	err = cursor.All(ctx, &docs)
	return docs, err
}
