package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ids knows the identities of the rows of an outbox table: numbers in ours, what their column holds in a mapped one.
type ids struct {
	mapped bool
	kind   string // of the mapped column
}

func (s *Store) ids(ctx context.Context, op string) (ids, error) {
	if s.mapping == nil {
		return ids{}, nil
	}
	t, err := s.theirTable(ctx, op)
	if err != nil {
		return ids{}, err
	}
	return ids{mapped: true, kind: t.columns[s.mapping.ID].kind}, nil
}

var integer = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,19})$`)

// valid says whether an id can be one of the table's.
func (i ids) valid(id string) bool {
	switch {
	case !i.mapped:
		return isNumber(id)
	case i.kind == kindInteger:
		return integer.MatchString(id)
	case i.kind == kindUUID:
		return uuid.MatchString(id)
	default:
		return id != "" && utf8.ValidString(id) && !strings.Contains(id, "\x00")
	}
}

func (i ids) check(id string) error {
	if !i.valid(id) {
		return fmt.Errorf("%q is no id of this outbox", id)
	}
	return nil
}

// value is an id as the set of a statement's parameter holds it.
func (i ids) value(id string) (any, error) {
	if err := i.check(id); err != nil {
		return nil, err
	}
	if i.mapped {
		return id, nil
	}
	return json.Number(id), nil
}

// json writes ids as a set for a statement's parameter.
func (i ids) json(list []string) (string, error) {
	values := make([]any, len(list))
	for n, id := range list {
		value, err := i.value(id)
		if err != nil {
			return "", err
		}
		values[n] = value
	}
	return toJSON(values), nil
}

// after is the id behind which a walk in the order of the ids goes on; empty starts before the lowest.
func (i ids) after(id string) (any, error) {
	switch {
	case i.mapped && id == "":
		return "", nil
	case i.mapped:
		return i.value(id)
	case id != "":
		if err := i.check(id); err != nil {
			return nil, err
		}
		return strconv.ParseInt(id, 10, 64)
	default:
		return int64(-1), nil
	}
}

// last is the highest of the ids that a statement returned; one about a mapped table returns them in their order.
func (i ids) last(list []string) string {
	if i.mapped {
		return list[len(list)-1]
	}
	return slices.MaxFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
}
