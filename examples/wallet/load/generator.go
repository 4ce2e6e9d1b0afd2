package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/examples/wallet/internal/wallet"
)

type options struct {
	events, wallets, writers, perTx, rollBackShare, rate int
	prefix                                               string
}

func (o options) validate() error {
	if o.events < 0 || o.wallets < 1 || o.writers < 1 || o.perTx < 1 || o.rollBackShare < 0 || o.rollBackShare > 90 || o.rate < 0 {
		return errors.New("-wallets, -writers and -per-tx must be above 0, -rolled-back between 0 and 90, -events and -rate not negative")
	}
	return nil
}

const (
	startBalance = 1_000_000_000_000
	maxAmount    = 1000
)

// generator spreads transactions over writers. Which wallet comes next is random, so that writers meet at some.
type generator struct {
	options
	service   *wallet.Service
	documents [][]byte
	ledger    *ledger
	run       int64 // makes references differ from those of other runs

	taken                                                atomic.Int64 // events that writers took on
	committedTx, refused, rolledBack, unanswered, losses atomic.Int64
	start                                                time.Time
}

func (g *generator) generate(ctx context.Context) error {
	if err := g.each(func(w *writer) error { return w.createWallets(ctx) }); err != nil {
		return fmt.Errorf("create wallets: %w", err)
	}
	g.start = time.Now()
	return g.each(func(w *writer) error { return w.work(ctx) })
}

// each lets all writers do something at the same time.
func (g *generator) each(do func(*writer) error) error {
	var wait sync.WaitGroup
	errs := make([]error, g.writers)
	for i := range errs {
		wait.Go(func() { errs[i] = do(&writer{generator: g, number: i}) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (g *generator) walletID(i int) string { return fmt.Sprintf("%s-%d", g.prefix, i) }

// take gives a writer up to most events to commit, 0 when all are given out.
func (g *generator) take(most int) int {
	end := g.taken.Add(int64(most))
	return max(0, most-int(max(0, end-int64(g.events))))
}

// writer commits one transaction after the other.
type writer struct {
	*generator
	number     int
	references int
	used       string // a reference that was committed
}

// createWallets creates this writer's part of the wallets.
func (w *writer) createWallets(ctx context.Context) error {
	for i := w.number; i < w.wallets; i += w.writers {
		if err := w.service.Create(ctx, w.walletID(i), startBalance); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) work(ctx context.Context) error {
	for n := w.take(1 + rand.IntN(w.perTx)); n > 0; n = w.take(1 + rand.IntN(w.perTx)) {
		if err := w.pace(ctx); err != nil {
			return err
		}
		for rand.IntN(100) < w.rollBackShare {
			if err := w.rollBack(ctx); err != nil {
				return err
			}
		}
		if err := w.commit(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// pace waits until the events taken on so far are due.
func (w *writer) pace(ctx context.Context) error {
	if w.rate == 0 {
		return ctx.Err()
	}
	due := w.start.Add(time.Duration(w.taken.Load()) * time.Second / time.Duration(w.rate))
	return sleep(ctx, time.Until(due))
}

// commit posts n entries, as often as it takes while the database cannot be reached.
func (w *writer) commit(ctx context.Context, n int) error {
	for {
		id := w.walletID(rand.IntN(w.wallets))
		entries := w.entries(n)
		events, err := w.service.Post(ctx, id, entries...)
		if errors.Is(err, wallet.ErrOutcomeUnknown) {
			w.unanswered.Add(1)
			err = w.resolve(ctx, id, entries[0].Reference, err)
		}
		if err == nil {
			w.committedTx.Add(1)
			w.used = entries[0].Reference
			return w.ledger.write(events, true)
		}
		if err := w.lost(ctx, events, err); err != nil {
			return err
		}
	}
}

// rollBack alternates between a debit that is refused before its event is added, and one that fails afterwards.
func (w *writer) rollBack(ctx context.Context) error {
	id := w.walletID(rand.IntN(w.wallets))
	entry := w.entries(1)[0]
	want := wallet.ErrReferenceTaken
	if afterwards := w.used != "" && rand.IntN(2) == 0; afterwards {
		entry.Reference = w.used
	} else {
		entry.Amount, want = -2*startBalance, wallet.ErrInsufficientFunds
	}
	events, err := w.service.Post(ctx, id, entry)
	switch {
	case errors.Is(err, want) && len(events) == 0:
		w.refused.Add(1)
		return nil
	case errors.Is(err, want):
		w.rolledBack.Add(1)
		return w.ledger.write(events, false)
	case err == nil:
		return fmt.Errorf("wallet %s took an entry that it must refuse: %+v", id, entry)
	default:
		return w.lost(ctx, events, err)
	}
}

// lost notes events that were rolled back because the database went away, and waits for a moment.
func (w *writer) lost(ctx context.Context, events []postrider.Event, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if w.losses.Add(1) == 1 {
		log.Printf("a transaction was lost and is tried again, as others will be: %v", err)
	}
	if err := w.ledger.write(events, false); err != nil {
		return err
	}
	return sleep(ctx, 200*time.Millisecond)
}

// resolve finds out what became of a commit that was not answered. It returns nil when it was done and unknown when
// it was not.
func (w *writer) resolve(ctx context.Context, id, reference string, unknown error) error {
	for {
		found, err := w.service.HasEntry(ctx, id, reference)
		switch {
		case err == nil && found:
			return nil
		case err == nil:
			return unknown
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// entries makes n entries that leave the balance about where it is. Some carry a document.
func (w *writer) entries(n int) []wallet.Entry {
	const documentEach = 8
	entries := make([]wallet.Entry, n)
	for i := range entries {
		w.references++
		entries[i] = wallet.Entry{
			Amount:    1 + rand.Int64N(maxAmount),
			Reference: fmt.Sprintf("%s-%d-%d-%d", w.prefix, w.run, w.number, w.references),
		}
		if rand.IntN(2) == 0 {
			entries[i].Amount *= -1
		}
		if rand.IntN(documentEach) == 0 {
			entries[i].Document = w.documents[rand.IntN(len(w.documents))]
		}
	}
	return entries
}

func (g *generator) report(took time.Duration) string {
	return fmt.Sprintf(`transactions committed            %d
transactions refused before add   %d
transactions rolled back after    %d
commits that were not answered    %d
transactions lost and tried again %d
events committed                  %d
seconds                           %.1f
events per second                 %.0f
`, g.committedTx.Load(), g.refused.Load(), g.rolledBack.Load(), g.unanswered.Load(), g.losses.Load(), g.events, took.Seconds(),
		float64(g.events)/took.Seconds())
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
