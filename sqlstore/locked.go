package sqlstore

import (
	"database/sql"
	"strconv"
	"strings"
)

// locked are the rows that the statements of one transaction have locked, for the statements after them. MySQL needs it:
// its UPDATE returns no rows and cannot refuse to wait for a lock. What a statement locked for share stands in the place
// of {proven} in later ones, what it locked for update in the place of {picked}: the numbers that it selected, separated
// by commas; null, which equals nothing, when there were none. Texts, such as the ids of a mapped table, stand in the
// place of {picked_set} as a JSON array.
type locked struct{ proven, picked, pickedSet string }

// fill puts the rows into a statement. Numbers need no quotes.
func (l *locked) fill(statement string) string {
	return strings.NewReplacer("{proven}", l.proven, "{picked}", l.picked, "{picked_set}", l.pickedSet).Replace(statement)
}

// reader returns what takes the rows of a statement, or nil when it locks none for later ones.
func (l *locked) reader(statement string) func(*sql.Rows) error {
	switch {
	case strings.Contains(statement, "LOCK IN SHARE MODE"):
		return numbersInto(&l.proven)
	case strings.Contains(statement, "\nFOR UPDATE "):
		if strings.HasPrefix(statement, "SELECT postrider_ref") { // the text of an id
			return textsInto(&l.pickedSet)
		}
		return numbersInto(&l.picked)
	}
	return nil
}

// textsInto returns a reader that writes rows of one text as an SQL literal of a JSON array.
func textsInto(list *string) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var texts []string
		read := into(&texts, scanValue[string])
		if err := read(rows); err != nil {
			return err
		}
		*list = mysqlPhrases{}.literal(toJSON(append([]string{}, texts...)))
		return nil
	}
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
