// Load commits events of the wallet service at full speed and writes a ledger of them, against which what arrives at
// a broker can be checked. Part of the transactions is rolled back, half of those after their events were added.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/examples/wallet/internal/wallet"
)

func main() {
	var o options
	flag.IntVar(&o.events, "events", 10_000, "events to commit")
	flag.IntVar(&o.wallets, "wallets", 1000, "wallets to spread them over")
	flag.StringVar(&o.prefix, "prefix", "w", "what the ids of the wallets start with; runs at the same time need different ones")
	flag.IntVar(&o.writers, "writers", 8, "transactions at the same time")
	flag.IntVar(&o.perTx, "per-tx", 4, "most events of one transaction")
	flag.IntVar(&o.rollBackShare, "rolled-back", 10, "transactions to roll back, in percent")
	flag.IntVar(&o.rate, "rate", 0, "events to commit per second; 0 means as many as possible")
	documents := flag.String("documents", "", "file of webhook examples whose bodies some events carry")
	ledgerFile := flag.String("ledger", "", "file to write the ledger to, one line of JSON for each event")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, *documents, *ledgerFile); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options, documents, ledgerFile string) error {
	if err := o.validate(); err != nil {
		return err
	}
	payloads, err := loadDocuments(documents)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	service, err := wallet.New(ctx, pool)
	if err != nil {
		return err
	}
	ledger, err := openLedger(ledgerFile)
	if err != nil {
		return err
	}
	g := &generator{options: o, service: service, documents: payloads, ledger: ledger, run: time.Now().UnixNano()}
	start := time.Now()
	if err := g.generate(ctx); err != nil {
		return err
	}
	if err := ledger.close(); err != nil {
		return err
	}
	fmt.Print(g.report(time.Since(start)))
	return nil
}
