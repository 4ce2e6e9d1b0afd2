package sqlstore

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
)

// where turns a filter into a condition on the events e. first is the number of the first parameter that it may use;
// args are the values of its parameters. States and ids stand in the text itself: they are checked, and a state that
// the planner can read makes the partial indexes usable.
func (s *Store) where(ids ids, f operator.Filter, first int) (condition string, args []any, err error) {
	terms := []string{"true"}
	equals := func(column, value string) {
		if value != "" {
			args = append(args, value)
			terms = append(terms, fmt.Sprintf("e.%s = %s", column, s.dialect.parameter(first+len(args)-1)))
		}
	}
	equals("aggregate_type", f.AggregateType)
	equals("aggregate_id", f.AggregateID)
	equals("event_type", f.EventType)
	if f.Sink != "" {
		args = append(args, f.Sink)
		terms = append(terms, s.queries["last_sink"][0]+" = "+s.dialect.parameter(first+len(args)-1))
	}
	if f.ErrorContains != "" {
		args = append(args, "%"+likeLiteral(strings.ToLower(f.ErrorContains))+"%")
		terms = append(terms, fmt.Sprintf("lower(e.last_error) LIKE %s ESCAPE '!'", s.dialect.parameter(first+len(args)-1)))
	}
	if f.State != "" && !slices.Contains(postrider.States(), f.State) {
		return "", nil, fmt.Errorf("%q is no state of an event", f.State)
	}
	if f.After != "" {
		if err := ids.check(f.After); err != nil {
			return "", nil, err
		}
	}
	if ids.mapped {
		return strings.Join(append(terms, s.theirs.Load().terms.where(ids, f)...), " AND "), args, nil
	}
	return strings.Join(append(terms, s.whereOurs(f)...), " AND "), args, nil
}

// amongDead is a condition that leads to the events that are DEAD, where a statement does not do that by itself: whether one
// is DEAD, it proves.
func (s *Store) amongDead() string {
	if s.mapping == nil {
		return "true"
	}
	return s.theirs.Load().terms.has(postrider.StateDead)
}

// among is the condition that an event e has one of the outbox ids, which came from the database.
func (s *Store) among(ids []string) string {
	list := ids
	if s.mapping != nil {
		list = nil
		for _, id := range ids {
			list = append(list, s.theirs.Load().terms.id(id))
		}
	}
	return "e.id IN (" + strings.Join(list, ", ") + ")"
}

// whereOurs are the parts of a filter that a mapped table tells in other words.
func (s *Store) whereOurs(f operator.Filter) (terms []string) {
	if indexed, ok := s.dialect.states[f.State]; ok {
		terms = append(terms, "e."+indexed)
	} else if f.State != "" {
		terms = append(terms, fmt.Sprintf("e.status = '%s'", f.State))
	}
	if f.After != "" {
		terms = append(terms, "e.id > "+f.After)
	}
	if len(f.IDs) > 0 {
		terms = append(terms, anyID(f.IDs))
	}
	return terms
}

// likeLiteral escapes what LIKE gives a meaning to.
func likeLiteral(text string) string {
	return strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(text)
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// anyID is the condition that an event has one of the outbox ids or event ids. What is neither matches nothing.
func anyID(ids []string) string {
	var outbox, event []string
	for _, id := range ids {
		if lower := strings.ToLower(id); uuid.MatchString(lower) {
			event = append(event, "'"+lower+"'")
		} else if isNumber(id) {
			outbox = append(outbox, id)
		}
	}
	var terms []string
	if len(outbox) > 0 {
		terms = append(terms, "e.id IN ("+strings.Join(outbox, ", ")+")")
	}
	if len(event) > 0 {
		terms = append(terms, "e.event_id IN ("+strings.Join(event, ", ")+")")
	}
	if len(terms) == 0 {
		return "false"
	}
	return "(" + strings.Join(terms, " OR ") + ")"
}
