package store

import (
	"testing"

	"github.com/postrider/postrider/storetest"
)

// fullMySQL is full in the words of MySQL.
func fullMySQL(t testing.TB, server string) mapped {
	d := newMySQL(t, server).named("journal")
	d.create(t, "testdata/tables/full-mysql.sql")
	return journal(d)
}

func minimalMySQL(t testing.TB, server string) mapped {
	d := newMySQL(t, server).named("letters")
	execute(t, d.db, "CREATE TABLE letters (no INT AUTO_INCREMENT PRIMARY KEY, whom VARCHAR(100) NOT NULL, what VARCHAR(100) NOT NULL, body LONGTEXT NOT NULL) CHARSET utf8mb4")
	return letters(d)
}

func TestMappedTablesOfMySQL(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB, string) mapped{"full": fullMySQL, "minimal": minimalMySQL} {
		for server, address := range mysqlServers {
			t.Run(name+"/"+server, func(t *testing.T) {
				storetest.Run(t, func(t *testing.T) storetest.Harness { return open(t, address).harness(t) })
			})
		}
	}
}
