package service

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Execute runs the statements of a script one by one, because drivers take no more than one.
func Execute(ctx context.Context, db *sql.DB, script string) error {
	for statement := range strings.SplitSeq(script, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
