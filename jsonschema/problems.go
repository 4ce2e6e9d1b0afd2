package postriderjsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Bounds of what is told of one payload.
const (
	maxProblems = 20
	maxProblem  = 300 // bytes
)

// maxExponent bounds numbers: the library works with exact ones, of which 1e999999999 does not fit into memory.
const maxExponent = 400

func check(schema *jsonschema.Schema, payload []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err != nil {
		return errors.New("is not valid JSON")
	}
	if place, found := hugeNumber(value, nil); found {
		return fmt.Errorf("%s has an exponent above %d", pointer(place), maxExponent)
	}
	err = schema.Validate(value)
	var failed *jsonschema.ValidationError
	if !errors.As(err, &failed) {
		return err
	}
	var problems []error
	for _, cause := range leaves(failed) {
		if len(problems) == maxProblems {
			problems = append(problems, errors.New("has more problems"))
			break
		}
		text := pointer(cause.InstanceLocation) + " " + problemOf(cause.ErrorKind)
		problems = append(problems, errors.New(strings.TrimSpace(cut(text))))
	}
	return errors.Join(problems...)
}

// cut keeps characters whole.
func cut(text string) string {
	if len(text) <= maxProblem {
		return text
	}
	return strings.ToValidUTF8(text[:maxProblem], "") + "..."
}

// hugeNumber looks for a number with a large exponent.
func hugeNumber(value any, place []string) (at []string, found bool) {
	switch value := value.(type) {
	case json.Number:
		_, exponent, has := strings.Cut(strings.ToLower(string(value)), "e")
		n, err := strconv.Atoi(exponent)
		return place, has && (err != nil || n > maxExponent || n < -maxExponent)
	case []any:
		for i, element := range value {
			if at, found := hugeNumber(element, append(slices.Clip(place), strconv.Itoa(i))); found {
				return at, true
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if at, found := hugeNumber(value[name], append(slices.Clip(place), name)); found {
				return at, true
			}
		}
	}
	return nil, false
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// pointer returns a JSON Pointer without characters that a log does not take.
func pointer(place []string) string {
	var text strings.Builder
	for _, name := range place {
		quoted := strconv.Quote(escape.Replace(name))
		text.WriteString("/" + quoted[1:len(quoted)-1])
	}
	return text.String()
}

// leaves returns the causes that have no causes of their own.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, leaves(cause)...)
	}
	return all
}

var english = message.NewPrinter(language.English)

// problemOf says what the schema asks for. The library's own words are for those kinds that do not tell a value of the payload.
func problemOf(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Required:
		return "lacks " + quoted(k.Missing)
	case *kind.AdditionalProperties:
		return "has names that the schema does not allow: " + quoted(k.Properties)
	case *kind.Type:
		return fmt.Sprintf("is of type %s, not %s", k.Got, strings.Join(k.Want, " or "))
	case *kind.Enum, *kind.Const, *kind.MinProperties, *kind.MaxProperties, *kind.MinItems, *kind.MaxItems, *kind.UniqueItems,
		*kind.MinLength, *kind.MaxLength, *kind.OneOf, *kind.Not, *kind.Contains, *kind.DependentRequired:
		return "breaks the schema: " + k.LocalizedString(english)
	case *kind.Format:
		return "is no " + k.Want
	case *kind.Pattern:
		return fmt.Sprintf("does not match the pattern %q", k.Want)
	case *kind.Minimum:
		return "is below " + decimal(k.Want)
	case *kind.Maximum:
		return "is above " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "is not above " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "is not below " + decimal(k.Want)
	case *kind.MultipleOf:
		return "is no multiple of " + decimal(k.Want)
	default:
		return "breaks the schema: " + strings.Join(k.KeywordPath(), "/")
	}
}

func decimal(r *big.Rat) string {
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func quoted(names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = strconv.Quote(name)
	}
	return strings.Join(texts, ", ")
}
