// Package wallet keeps wallets and orders in PostgreSQL and tells about each change with an event.
//
// An event and the change that it tells about are committed by one transaction. The events of one wallet are numbered
// in the order of their commits, because every transaction locks the wallet before it adds them.
package wallet

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	postriderpgx "github.com/postrider/postrider/pgx"
)

// What a caller can mend.
var (
	ErrNotFound          = errors.New("there is no such wallet or order")
	ErrInsufficientFunds = errors.New("the wallet has too little money")
	ErrReferenceTaken    = errors.New("the reference was used before")
)

// ErrOutcomeUnknown says that the connection broke during the commit. Service.HasEntry tells what became of it.
var ErrOutcomeUnknown = errors.New("the commit was not answered")

//go:embed schema.sql
var schema string

// Service is safe for concurrent use.
type Service struct {
	pool   *pgxpool.Pool
	outbox *postrider.Outbox
}

// New creates the service's own tables where they are missing. The outbox table is made by postrider init. The
// caller closes the pool.
func New(ctx context.Context, pool *pgxpool.Pool) (*Service, error) {
	outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL})
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, schema); err != nil {
		return nil, fmt.Errorf("create the tables of the wallet service: %w", err)
	}
	return &Service{pool: pool, outbox: outbox}, nil
}

// Wallet is a wallet as it stands. Version counts its entries.
type Wallet struct {
	ID      string `json:"id"`
	Balance int64  `json:"balance"`
	Version int64  `json:"version"`
}

// Entry moves the balance of a wallet.
type Entry struct {
	Amount    int64  // negative for a debit
	Reference string // one for each entry; a second entry with it is refused

	// Document, when set, is the payload of the event as it is, such as the notice of a payment provider.
	Document []byte
}

// Create makes a wallet, unless it is there already.
func (s *Service) Create(ctx context.Context, id string, balance int64) error {
	_, err := s.pool.Exec(ctx, "INSERT INTO wallets (id, balance) VALUES ($1, $2) ON CONFLICT DO NOTHING", id, balance)
	return err
}

// Get returns a wallet, or ErrNotFound.
func (s *Service) Get(ctx context.Context, id string) (Wallet, error) {
	w := Wallet{ID: id}
	err := s.pool.QueryRow(ctx, "SELECT balance, version FROM wallets WHERE id = $1", id).Scan(&w.Balance, &w.Version)
	return w, notFound(err)
}

// HasEntry tells whether the entry with that reference was committed to the wallet. It waits for a transaction that
// still works on the wallet.
func (s *Service) HasEntry(ctx context.Context, id, reference string) (found bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := lock(ctx, tx, id); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM entries WHERE reference = $1)", reference).Scan(&found)
	})
	return found, err
}

// Post applies entries to one wallet, all or none. It returns ErrNotFound, ErrInsufficientFunds, ErrReferenceTaken or
// ErrOutcomeUnknown where they apply. It returns the events that were added, also when they were rolled back.
func (s *Service) Post(ctx context.Context, id string, entries ...Entry) ([]postrider.Event, error) {
	var events []postrider.Event
	err := s.inTx(ctx, func(tx pgx.Tx) (err error) {
		events, err = s.post(ctx, tx, id, entries)
		return err
	})
	return events, err
}

func (s *Service) inTx(ctx context.Context, work func(pgx.Tx) error) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return err
	}
	if err := work(tx); err != nil {
		return errors.Join(err, tx.Rollback(context.WithoutCancel(ctx)))
	}
	err = tx.Commit(ctx)
	if refused, ok := errors.AsType[*pgconn.PgError](err); err != nil && (!ok || refused.Severity != "ERROR") {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}

func (s *Service) post(ctx context.Context, tx pgx.Tx, id string, entries []Entry) ([]postrider.Event, error) {
	w, err := lock(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	events := make([]postrider.Event, len(entries))
	for i, e := range entries {
		w.Balance += e.Amount
		w.Version++
		if w.Balance < 0 {
			return nil, ErrInsufficientFunds
		}
		events[i] = event(w, e)
	}
	if err := save(ctx, tx, w); err != nil {
		return nil, err
	}
	added, err := s.outbox.Add(ctx, postriderpgx.Tx(tx), events...)
	if err != nil {
		return nil, err
	}
	for i, a := range added {
		events[i].ID = a.EventID
	}
	return events, record(ctx, tx, w, entries)
}

// lock comes before the events are added. Two transactions that added events of one wallet side by side would be
// numbered in one order and could commit in the other.
func lock(ctx context.Context, tx pgx.Tx, id string) (Wallet, error) {
	w := Wallet{ID: id}
	err := tx.QueryRow(ctx, "SELECT balance, version FROM wallets WHERE id = $1 FOR UPDATE", id).Scan(&w.Balance, &w.Version)
	return w, notFound(err)
}

func save(ctx context.Context, tx pgx.Tx, w Wallet) error {
	_, err := tx.Exec(ctx, "UPDATE wallets SET balance = $2, version = $3 WHERE id = $1", w.ID, w.Balance, w.Version)
	return err
}

// record comes last, so a reference that was used before rolls back events that were added already.
func record(ctx context.Context, tx pgx.Tx, w Wallet, entries []Entry) error {
	batch := &pgx.Batch{}
	for i, e := range entries {
		batch.Queue("INSERT INTO entries (wallet, version, amount, reference) VALUES ($1, $2, $3, $4)",
			w.ID, w.Version-int64(len(entries)-1-i), e.Amount, e.Reference)
	}
	return taken(tx.SendBatch(ctx, batch).Close())
}

// event tells what an entry did to the wallet.
func event(w Wallet, e Entry) postrider.Event {
	kind := "WalletCredited"
	if e.Amount < 0 {
		kind = "WalletDebited"
	}
	payload := e.Document
	if payload == nil {
		payload = encode(map[string]any{"wallet": w.ID, "amount": e.Amount, "balance": w.Balance, "reference": e.Reference})
	}
	return postrider.Event{
		AggregateType:    "wallet",
		AggregateID:      w.ID,
		AggregateVersion: w.Version,
		Type:             kind,
		Payload:          payload,
		Headers:          map[string]string{"reference": e.Reference},
	}
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // maps of texts and numbers can always be marshalled
	}
	return text
}

func notFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

func taken(err error) error {
	const uniqueViolation = "23505"
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == uniqueViolation {
		return ErrReferenceTaken
	}
	return err
}
