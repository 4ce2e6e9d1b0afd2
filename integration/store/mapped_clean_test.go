package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

func TestCleaningAMappedTableWithoutTheRightSaysWhatToGrant(t *testing.T) {
	test := func(t *testing.T, mine mapped) {
		_, err := mine.init(t).Clean(t.Context(), relay.CleanRequest{Limit: 10})
		if want := "GRANT DELETE ON " + mine.table + " TO"; !errors.Is(err, sqlstore.ErrDenied) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want ErrDenied and %q", err, want)
		}
	}
	t.Run("postgres", func(t *testing.T) {
		m := plain(t, number)
		execute(t, m.db, "INSERT INTO tasks (who, status) VALUES ('a', 'SENT')")
		test(t, m.as(t, "SELECT, UPDATE"))
	})
	eachTasks(t, mysqlNumber, func(t *testing.T, m mapped) {
		execute(t, m.db, "INSERT INTO tasks (who, status) VALUES ('a', 'SENT')")
		mine, _ := m.asUser(t, "SELECT, UPDATE")
		test(t, mine)
	})
}
