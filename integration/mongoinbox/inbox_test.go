package mongoinbox

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/mongo"
)

func TestEffectIsAppliedOncePerConsumer(t *testing.T) {
	s := newStage(t)
	billing, shipping := s.inbox(t, mongo.InboxConfig{}), s.inbox(t, mongo.InboxConfig{Consumer: "shipping"})
	s.process(t, billing, "m", inbox.Applied)
	s.process(t, billing, "m", inbox.Duplicate)
	s.process(t, shipping, "m", inbox.Applied)
	for _, other := range []string{"M", "m ", "$m", "m\u0301"} {
		s.process(t, billing, other, inbox.Applied)
		s.process(t, billing, other, inbox.Duplicate)
		s.wantOne(t, other)
	}
	found := s.receipts(t, "m")
	if n := s.effects(t, "m"); n != 2 || len(found) != 2 || found[0].Consumer != "billing" || found[1].Consumer != "shipping" {
		t.Errorf("%d effects and receipts %+v, want one for each consumer, earliest first", n, found)
	}
}

func TestDuplicateTellsAndCountsInTheReceiptThatItMet(t *testing.T) {
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{})
	before := time.Now().Add(-time.Minute) // this machine runs the server as well
	applied := s.process(t, in, "m", inbox.Applied).Receipt
	if want := (inbox.Receipt{Consumer: "billing", DedupKey: "m", EventID: "m", Source: "test:m"}); applied != want {
		t.Errorf("wrote %+v, want %+v", applied, want)
	}
	for n := int64(1); n <= 3; n++ {
		met := s.process(t, in, "m", inbox.Duplicate).Receipt
		found := s.receipts(t, "m")
		if len(found) != 1 || !reflect.DeepEqual(met, found[0]) {
			t.Errorf("met %+v, found %+v", met, found)
		}
		if met.Duplicates != n || met.Source != "test:m" || met.EventID != "m" {
			t.Errorf("met %+v, want %d duplicates", met, n)
		}
		for _, at := range []*time.Time{&met.At, met.LastDuplicateAt} {
			if at == nil || at.Before(before) || at.After(time.Now().Add(time.Minute)) || at.Location() != time.UTC {
				t.Errorf("met %+v: %v is not now", met, at)
			}
		}
	}
}

func TestBusinessIdentityIsAppliedOnceAndFoundByEventID(t *testing.T) {
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{DedupKey: func(m inbox.Message) (string, error) { return inbox.BusinessKey("reward", string(m.Payload)) }})
	for i, want := range []inbox.Outcome{inbox.Applied, inbox.Duplicate} {
		m := message(fmt.Sprint("event-", i+1))
		m.Payload = []byte("Ключ/1")
		result, err := in.Process(t.Context(), m, s.write("reward"))
		if result.Outcome != want || err != nil {
			t.Errorf("%+v, %v, want %q", result, err, want)
		}
		if r := result.Receipt; r.DedupKey != "reward/Ключ%2F1" || r.EventID != "event-1" {
			t.Errorf("receipt %+v, want that of the first event", r)
		}
	}
	if n := s.effects(t, "reward"); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
	for id, want := range map[string]int{"event-1": 1, "reward/Ключ%2F1": 1, "event-2": 0, "reward": 0} {
		if found := s.receipts(t, id); len(found) != want {
			t.Errorf("found %+v by %s, want %d", found, id, want)
		}
	}
}

// A transaction that a majority has is what a fail-over keeps.
func TestReceiptComesFirstInTheEffectsTransaction(t *testing.T) {
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{})
	s.process(t, in, "warm", inbox.Applied)
	s.sent()
	s.process(t, in, "m", inbox.Applied)
	sent, _ := s.sent()
	var names []string
	for i, command := range sent {
		name := command.Index(0).Key()
		names = append(names, name)
		if autocommit, ok := command.Lookup("autocommit").BooleanOK(); !ok || autocommit || !command.Lookup("txnNumber").Equal(sent[0].Lookup("txnNumber")) {
			t.Errorf("%s is not in the transaction", name)
		}
		if level, _ := command.Lookup("readConcern", "level").StringValueOK(); (level == "snapshot") != (i == 0) {
			t.Errorf("%s reads with the concern %q", name, level)
		}
	}
	if want := []string{"update", "insert", "commitTransaction"}; !slices.Equal(names, want) {
		t.Fatalf("sent %q, want %q", names, want)
	}
	if w, _ := sent[2].Lookup("writeConcern", "w").StringValueOK(); w != "majority" {
		t.Errorf("the commit waits for %q", w)
	}
}

func TestEffectAndReceiptAreBothThereOrNeither(t *testing.T) {
	failed := errors.New("no stock")
	for name, fail := range map[string]func(context.Context, context.CancelFunc) error{
		"error": func(context.Context, context.CancelFunc) error { return failed },
		"panic": func(context.Context, context.CancelFunc) error { panic("no stock") },
		"cancel": func(_ context.Context, cancel context.CancelFunc) error {
			cancel()
			return nil
		},
		"abort": func(ctx context.Context, _ context.CancelFunc) error {
			return driver.SessionFromContext(ctx).AbortTransaction(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			in := s.inbox(t, mongo.InboxConfig{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			runs := 0
			result, err := recovering(func() (inbox.Result, error) {
				return in.Process(ctx, message("m"), func(ctx context.Context) error {
					runs++
					if err := s.write("m")(ctx); err != nil {
						t.Error(err)
					}
					return fail(ctx, cancel)
				})
			})
			if result.Outcome != "" || err == nil || runs != 1 {
				t.Errorf("%q, %v after %d runs; want an error", result.Outcome, err, runs)
			}
			if name == "error" && !errors.Is(err, failed) {
				t.Errorf("error %v is not that of the effect", err)
			}
			if (name == "error" || name == "abort") && inbox.ClassOf(err) != inbox.ClassRetry {
				t.Errorf("error %v of class %s is the message's", err, inbox.ClassOf(err))
			}
			s.wantNone(t, "m")
			s.process(t, in, "m", inbox.Applied)
			s.wantOne(t, "m")
		})
	}
}

func recovering(process func() (inbox.Result, error)) (result inbox.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return process()
}

// The server has ended the transaction when a statement of it failed, and does not know it at the commit. It would do so for
// ever, so it is an error of the message.
func TestEffectThatHidesAFailedStatementIsNotApplied(t *testing.T) {
	s := newStage(t)
	if _, err := s.db.Collection("effects").InsertOne(t.Context(), bson.M{"_id": 1}); err != nil {
		t.Fatal(err)
	}
	result, err := s.inbox(t, mongo.InboxConfig{}).Process(t.Context(), message("m"), func(ctx context.Context) error {
		if _, err := s.db.Collection("effects").InsertOne(ctx, bson.M{"_id": 1}); err == nil {
			t.Error("the statement did not fail")
		}
		return nil
	})
	if err == nil || inbox.ClassOf(err) != inbox.ClassRetry {
		t.Errorf("result %+v, error %v of class %s", result, err, inbox.ClassOf(err))
	}
	s.wantNone(t, "m")
}

func TestOfDeliveriesAtTheSameTimeOneIsApplied(t *testing.T) {
	const deliveries = 20
	for name, test := range map[string]struct {
		rounds  int
		deliver func(context.Context, *stage, *mongo.Inbox, string) (inbox.Result, error)
	}{
		"Process": {200, func(ctx context.Context, s *stage, in *mongo.Inbox, id string) (inbox.Result, error) {
			return in.Process(ctx, message(id), s.write(id))
		}},
		"Apply": {50, applyInWithTransaction},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			in := s.inbox(t, mongo.InboxConfig{})
			for round := range test.rounds {
				id := fmt.Sprint("m", round)
				counts := map[inbox.Outcome]int{}
				for _, result := range atOnce(deliveries, func() inbox.Result {
					result, err := test.deliver(t.Context(), s, in, id)
					return inbox.Result{Outcome: result.Outcome, Err: err}
				}) {
					if result.Err != nil {
						t.Fatal(result.Err)
					}
					counts[result.Outcome]++
				}
				if want := map[inbox.Outcome]int{inbox.Applied: 1, inbox.Duplicate: deliveries - 1}; !reflect.DeepEqual(counts, want) {
					t.Errorf("round %d: outcomes %v, want %v", round, counts, want)
				}
				s.wantOne(t, id)
				if found := s.receipts(t, id); found[0].Duplicates != deliveries-1 {
					t.Errorf("round %d: receipt %+v, want %d duplicates", round, found[0], deliveries-1)
				}
			}
		})
	}
}

// applyInWithTransaction is what a caller does that begins its own transactions.
func applyInWithTransaction(ctx context.Context, s *stage, in *mongo.Inbox, id string) (result inbox.Result, err error) {
	err = s.client.UseSession(ctx, func(ctx context.Context) error {
		_, err := driver.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
			var err error
			result, err = in.Apply(ctx, message(id), s.write(id))
			return nil, err
		})
		return err
	})
	return result, err
}

// atOnce calls f n times at a barrier.
func atOnce[T any](n int, f func() T) []T {
	results := make([]T, n)
	barrier := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-barrier
			results[i] = f()
		})
	}
	close(barrier)
	wg.Wait()
	return results
}

// The server does not let a transaction wait for another one, so whoever comes second asks again, as long as it takes.
func TestDeliveryWaitsForTheOneThatIsBeingApplied(t *testing.T) {
	for name, first := range map[string]struct {
		end  func(*driver.Session, context.Context) error
		want inbox.Outcome
	}{
		"commit": {(*driver.Session).CommitTransaction, inbox.Duplicate},
		"abort":  {(*driver.Session).AbortTransaction, inbox.Applied},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			in := s.inbox(t, mongo.InboxConfig{})
			ctx, session := s.begin(t)
			if result, err := in.Apply(ctx, message("m"), s.write("m")); result.Outcome != inbox.Applied || err != nil {
				t.Fatalf("%q, %v", result.Outcome, err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.process(t, in, "m", first.want)
			}()
			await.True(t, time.Minute, "more refusals than a broken connection is given", func() bool { return s.failures("update") > 11 })
			if err := first.end(session, ctx); err != nil {
				t.Fatal(err)
			}
			<-done
			s.wantOne(t, "m")
		})
	}
}

// begin returns a context with a running transaction.
func (s *stage) begin(t *testing.T) (context.Context, *driver.Session) {
	t.Helper()
	session, err := s.client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.EndSession(context.WithoutCancel(t.Context())) })
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	return driver.NewSessionContext(t.Context(), session), session
}

func TestConflictOfEffectsIsTriedAgain(t *testing.T) {
	const messages = 8
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{})
	counter := s.db.Collection("effects")
	if _, err := counter.InsertOne(t.Context(), bson.M{"_id": "counter", "n": 0}); err != nil {
		t.Fatal(err)
	}
	var next sync.Mutex
	n := 0
	for _, err := range atOnce(messages, func() error {
		next.Lock()
		n++
		id := fmt.Sprint("m", n)
		next.Unlock()
		_, err := in.Process(t.Context(), message(id), func(ctx context.Context) error {
			_, err := counter.UpdateByID(ctx, "counter", bson.M{"$inc": bson.M{"n": 1}})
			return err
		})
		return err
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	var found struct{ N int }
	if err := counter.FindOne(t.Context(), bson.M{"_id": "counter"}).Decode(&found); err != nil || found.N != messages {
		t.Errorf("counted %d, %v; want %d", found.N, err, messages)
	}
	if s.failures("update") == 0 {
		t.Error("no two effects were in each other's way: the test shows nothing")
	}
}

func TestApplyInTheCallersTransaction(t *testing.T) {
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{})
	for _, end := range []struct {
		end  func(*driver.Session, context.Context) error
		want inbox.Outcome
	}{
		{(*driver.Session).AbortTransaction, inbox.Applied}, {(*driver.Session).CommitTransaction, inbox.Applied},
		{(*driver.Session).CommitTransaction, inbox.Duplicate},
	} {
		ctx, session := s.begin(t)
		result, err := in.Apply(ctx, message("m"), s.write("m"))
		if result.Outcome != end.want || err != nil {
			t.Errorf("%q, %v; want %q", result.Outcome, err, end.want)
		}
		if err := end.end(session, ctx); err != nil {
			t.Fatal(err)
		}
	}
	s.wantOne(t, "m")
}

func TestApplyIsRefusedWithoutATransaction(t *testing.T) {
	s := newStage(t)
	s.sent()
	result, err := s.inbox(t, mongo.InboxConfig{}).Apply(t.Context(), message("m"), s.write("m"))
	if _, refused := errors.AsType[*mongo.TransactionError](err); !refused || result.Err != err {
		t.Errorf("error %v and %v, want a TransactionError", err, result.Err)
	}
	if sent, _ := s.sent(); len(sent) > 0 {
		t.Errorf("sent %s", sent)
	}
}

func TestMessageWithoutAKeyIsMalformed(t *testing.T) {
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{})
	noID := message("")
	noID.Headers = nil
	for _, m := range []inbox.Message{noID, message(""), message("a\nbilling")} {
		_, err := in.Process(t.Context(), m, s.write("m"))
		if _, refused := errors.AsType[*inbox.KeyError](err); !refused || inbox.ClassOf(err) != inbox.ClassMalformed {
			t.Errorf("error %v, want a KeyError", err)
		}
	}
}

// The commit takes place, and the answer does not say so.
func TestCommitWhoseAnswerIsLostIsAskedForAgain(t *testing.T) {
	for name, lost := range map[string]bson.E{
		"answer":     {Key: "writeConcernError", Value: bson.M{"code": 64, "errmsg": "not heard of the others"}},
		"connection": {Key: "closeConnection", Value: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.fail(t, times(5), bson.D{{Key: "failCommands", Value: bson.A{"commitTransaction"}}, lost})
			s.process(t, s.inbox(t, mongo.InboxConfig{}), "m", inbox.Applied)
			s.wantOne(t, "m")
		})
	}
}

func TestCommitWhoseOutcomeStaysUnknownIsFoundByItsReceipt(t *testing.T) {
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{})
	s.fail(t, "alwaysOn", bson.D{
		{Key: "failCommands", Value: bson.A{"commitTransaction"}},
		{Key: "writeConcernError", Value: bson.M{"code": 64, "errmsg": "not heard of the others"}},
	})
	_, err := in.Process(t.Context(), message("m"), s.write("m"))
	if inbox.ClassOf(err) != inbox.ClassUnavailable {
		t.Errorf("error %v of class %s", err, inbox.ClassOf(err))
	}
	s.fail(t, "off", nil)
	s.process(t, in, "m", inbox.Duplicate)
	s.wantOne(t, "m")
}

func TestConnectionThatBreaksIsNotTheMessages(t *testing.T) {
	for _, at := range []string{"update", "insert"} { // receipt, effect
		broken := bson.D{{Key: "failCommands", Value: bson.A{at}}, {Key: "closeConnection", Value: true}}
		t.Run(at, func(t *testing.T) {
			s := newStage(t)
			in := s.inbox(t, mongo.InboxConfig{})
			s.fail(t, times(3), broken)
			s.process(t, in, "m", inbox.Applied)
			s.wantOne(t, "m")
			s.fail(t, "alwaysOn", broken)
			_, err := in.Process(t.Context(), message("n"), s.write("n"))
			if inbox.ClassOf(err) != inbox.ClassUnavailable {
				t.Errorf("error %v of class %s", err, inbox.ClassOf(err))
			}
		})
	}
}

// On a server without transactions an effect could fail and leave its receipt behind.
func TestServerWithoutTransactionsIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	client := connect(t, "POSTRIDER_TEST_MONGODB")
	db := newDatabase(t, client)
	in, err := mongo.NewInbox(db.Collection("inbox_receipts"), mongo.InboxConfig{Consumer: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	var hello bson.M
	if err := client.Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&hello); err != nil {
		t.Fatal(err)
	}
	_, transactions := hello["setName"]
	_, err = in.Process(t.Context(), message("m"), func(context.Context) error { return errors.New("no stock") })
	if errors.Is(err, mongo.ErrNoTransactions) == transactions || inbox.ClassOf(err) == inbox.ClassUnavailable == transactions {
		t.Errorf("error %v of class %s of a server with transactions: %v", err, inbox.ClassOf(err), transactions)
	}
	if err := in.Init(t.Context()); errors.Is(err, mongo.ErrNoTransactions) == transactions {
		t.Errorf("Init: %v", err)
	}
	if found, err := in.Receipts(t.Context(), "m"); len(found) > 0 {
		t.Errorf("receipts %+v, %v", found, err)
	}
}
