package sqlstore

import (
	"context"
	"database/sql"
)

// Outboxes lists the tables that Init has created in the schema of this Store's side tables, its own among them, as
// Config.Table names them. They belong to whoever created them, which need not be this configuration.
func (s *Store) Outboxes(ctx context.Context) ([]string, error) {
	var tables []string
	err := s.run(ctx, "list the outboxes", "outboxes", into(&tables, func(rows *sql.Rows) (string, error) {
		table, err := scanValue[string](rows)
		if s.names.sideSchema != "" {
			table = s.names.sideSchema + "." + table
		}
		return table, err
	}))
	return tables, err
}
