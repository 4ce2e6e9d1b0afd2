package sqlstore

import (
	"database/sql"
	"strconv"
	"strings"
)

// locked are the rows that the statements of one transaction have locked, for the statements after them. MySQL needs it:
// its UPDATE returns no rows and cannot refuse to wait for a lock. What a statement locked for share stands in the place
// of {proven} in later ones, what it locked for update in the place of {picked}: the numbers that it selected, separated
// by commas; null, which equals nothing, when there were none.
type locked struct{ proven, picked string }

// fill puts the rows into a statement. They are numbers, so that they need no quotes.
func (l *locked) fill(statement string) string {
	return strings.NewReplacer("{proven}", l.proven, "{picked}", l.picked).Replace(statement)
}

// reader returns what takes the rows of a statement, or nil when it locks none for later ones.
func (l *locked) reader(statement string) func(*sql.Rows) error {
	switch {
	case strings.Contains(statement, "LOCK IN SHARE MODE"):
		return numbersInto(&l.proven)
	case strings.Contains(statement, "\nFOR UPDATE "):
		return numbersInto(&l.picked)
	}
	return nil
}

// numbersInto returns a reader that lists rows of numbers; each is in parentheses when there is more than one column.
func numbersInto(list *string) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		values := make([]sql.NullInt64, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		var found []string
		for rows.Next() {
			if err := rows.Scan(targets...); err != nil {
				return err
			}
			found = append(found, tuple(values))
		}
		if len(found) == 0 {
			found = append(found, tuple(make([]sql.NullInt64, len(columns))))
		}
		*list = strings.Join(found, ", ")
		return nil
	}
}

func tuple(values []sql.NullInt64) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = "null"
		if v.Valid {
			texts[i] = strconv.FormatInt(v.Int64, 10)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "(" + strings.Join(texts, ", ") + ")"
}
