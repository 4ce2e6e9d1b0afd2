package inbox

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/integration/internal/testdb"
)

// BenchmarkBatch applies batches of 500 messages, whose effect is one INSERT for all of them, with receipts and without.
// With duplicates half of each batch was applied before.
func BenchmarkBatch(b *testing.B) {
	const size = 500
	b.Run("without receipts", func(b *testing.B) {
		db := benchDatabase(b)
		for n := 0; b.Loop(); n++ {
			if err := withoutReceipts(b.Context(), db.DB, messages(n*size, size)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)*size/b.Elapsed().Seconds(), "messages/s")
	})
	for name, step := range map[string]int{"receipts": size, "receipts, half duplicates": size / 2} {
		b.Run(name, func(b *testing.B) {
			db := benchDatabase(b)
			in, err := inbox.New(inbox.Config{Dialect: db.Dialect, Consumer: "bench"})
			if err != nil {
				b.Fatal(err)
			}
			if err := in.Init(b.Context(), db.DB); err != nil {
				b.Fatal(err)
			}
			for n := 0; b.Loop(); n++ {
				for _, r := range in.ProcessBatch(b.Context(), db.DB, messages(n*step, size), insertAll) {
					if r.Err != nil {
						b.Fatal(r.Err)
					}
				}
			}
			b.ReportMetric(float64(b.N)*size/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

func benchDatabase(b *testing.B) testdb.Database {
	db := testdb.Postgres(b, "pgx")
	if _, err := db.ExecContext(b.Context(), `CREATE TABLE effects (what text)`); err != nil {
		b.Fatal(err)
	}
	return db
}

func messages(from, n int) []inbox.Message {
	batch := make([]inbox.Message, n)
	for i := range batch {
		batch[i] = message(fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", from+i))
	}
	return batch
}

func insertAll(ctx context.Context, tx *sql.Tx, fresh []inbox.Message) error {
	ids := make([]string, len(fresh))
	for i, m := range fresh {
		ids[i] = m.EventID()
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO effects (what) SELECT unnest(string_to_array($1, ','))`, strings.Join(ids, ","))
	return err
}

func withoutReceipts(ctx context.Context, db *sql.DB, batch []inbox.Message) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := insertAll(ctx, tx, batch); err != nil {
		return err
	}
	return tx.Commit()
}

// BenchmarkReplay processes batches that were applied before, without a filter and with one.
func BenchmarkReplay(b *testing.B) {
	const size, all = 500, 20_000
	for name, filter := range map[string]inbox.Filter{"no filter": nil, "filter": inbox.NewRecent(4 * all)} {
		b.Run(name, func(b *testing.B) {
			db := benchDatabase(b)
			in, err := inbox.New(inbox.Config{Dialect: db.Dialect, Consumer: "bench", Filter: filter})
			if err != nil {
				b.Fatal(err)
			}
			if err := in.Init(b.Context(), db.DB); err != nil {
				b.Fatal(err)
			}
			for n := 0; n < all; n += size {
				in.ProcessBatch(b.Context(), db.DB, messages(n, size), insertAll)
			}
			for n := 0; b.Loop(); n++ {
				for _, r := range in.ProcessBatch(b.Context(), db.DB, messages(n*size%all, size), insertAll) {
					if r.Outcome != inbox.Duplicate {
						b.Fatal(r)
					}
				}
			}
			b.ReportMetric(float64(b.N)*size/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
