package outbox

import (
	"errors"
	"fmt"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jmoiron/sqlx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/schema"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/integration/internal/testdb"
)

// transaction is a library's transaction, and how the library rolls it back.
type transaction struct {
	tx       postrider.Tx
	rollback func() error
}

// library opens db with a library: its pool and a transaction.
type library struct {
	name  string
	pool  func(t *testing.T, db testdb.Database) postrider.Tx
	begin func(t *testing.T, db testdb.Database) transaction
}

var libraries = []library{
	{
		name: "sqlx",
		pool: func(_ *testing.T, db testdb.Database) postrider.Tx { return sqlx.NewDb(db.DB, db.Driver) },
		begin: func(t *testing.T, db testdb.Database) transaction {
			tx := sqlx.NewDb(db.DB, db.Driver).MustBeginTx(t.Context(), nil)
			return transaction{tx, tx.Rollback}
		},
	},
	{
		name: "bun",
		pool: func(_ *testing.T, db testdb.Database) postrider.Tx { return openBun(db) },
		begin: func(t *testing.T, db testdb.Database) transaction {
			tx, err := openBun(db).BeginTx(t.Context(), nil)
			return transaction{tx, must(t, tx.Rollback, err)}
		},
	},
	{
		name: "bun by pointer",
		pool: func(_ *testing.T, db testdb.Database) postrider.Tx { return openBun(db) },
		begin: func(t *testing.T, db testdb.Database) transaction {
			tx, err := openBun(db).BeginTx(t.Context(), nil)
			return transaction{&tx, must(t, tx.Rollback, err)}
		},
	},
	{
		name: "ent",
		pool: func(_ *testing.T, db testdb.Database) postrider.Tx { return openEnt(db) },
		begin: func(t *testing.T, db testdb.Database) transaction {
			tx, err := openEnt(db).BeginTx(t.Context(), nil)
			return transaction{tx.(postrider.Tx), must(t, tx.Rollback, err)}
		},
	},
}

func openBun(db testdb.Database) *bun.DB {
	var dialect schema.Dialect = pgdialect.New()
	switch db.Dialect {
	case postrider.SQLite:
		dialect = sqlitedialect.New()
	case postrider.MySQL:
		dialect = mysqldialect.New()
	}
	return bun.NewDB(db.DB, dialect)
}

func openEnt(db testdb.Database) *entsql.Driver {
	name := dialect.Postgres
	switch db.Dialect {
	case postrider.SQLite:
		name = dialect.SQLite
	case postrider.MySQL:
		name = dialect.MySQL
	}
	return entsql.OpenDB(name, db.DB)
}

func must(t *testing.T, rollback func() error, err error) func() error {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return rollback
}

func TestTransactionsOfLibraries(t *testing.T) {
	for _, lib := range libraries {
		t.Run(lib.name, func(t *testing.T) {
			testdb.All(t, func(t *testing.T, db testdb.Database) {
				testLibrary(t, db, lib)
			})
		})
	}
}

// GORM's own driver decides on the database driver, so it is tested on one.
func TestTransactionsOfGORM(t *testing.T) {
	for _, prepare := range []bool{false, true} {
		t.Run(fmt.Sprintf("PrepareStmt %v", prepare), func(t *testing.T) {
			open := func(t *testing.T, db testdb.Database) *gorm.DB {
				g, err := gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: db.DB}), &gorm.Config{PrepareStmt: prepare})
				if err != nil {
					t.Fatal(err)
				}
				return g.WithContext(t.Context())
			}
			testLibrary(t, testdb.Postgres(t, "pgx"), library{
				pool: func(t *testing.T, db testdb.Database) postrider.Tx { return open(t, db).Statement.ConnPool },
				begin: func(t *testing.T, db testdb.Database) transaction {
					tx := open(t, db).Begin()
					return transaction{tx.Statement.ConnPool, must(t, func() error { return tx.Rollback().Error }, tx.Error)}
				},
			})
		})
	}
}

func testLibrary(t *testing.T, db testdb.Database, lib library) {
	outbox := db.InitOutbox(t, postrider.Config{})
	deduped := events(3)
	deduped[0].DedupKey, deduped[2].DedupKey = "k", "k"

	var refused *postrider.TxError
	if added, err := outbox.Add(t.Context(), lib.pool(t, db), deduped...); !errors.As(err, &refused) {
		t.Errorf("Add through the pool: %v, %v; want a TxError", added, err)
	}
	tx := lib.begin(t, db)
	if added := add(t, outbox, tx.tx, events(2)...); added[0].Dropped {
		t.Errorf("added %+v", added)
	}
	if added := add(t, outbox, tx.tx, deduped...); added[0].Dropped || !added[2].Dropped {
		t.Errorf("added %+v, want the last one dropped", added)
	}
	if err := tx.rollback(); err != nil {
		t.Fatal(err)
	}
	if rows := written(t, db); len(rows) != 0 {
		t.Errorf("rows %v after the rollback", rows)
	}
}

func TestConnectionOfBun(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{})
		conn, err := openBun(db).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.ExecContext(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		add(t, outbox, conn, event("1"))
		if _, err := conn.ExecContext(t.Context(), "COMMIT"); err != nil {
			t.Fatal(err)
		}
		if rows := written(t, db); len(rows) != 1 {
			t.Errorf("rows %v, want one", rows)
		}
	})
}
