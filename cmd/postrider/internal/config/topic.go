package config

import (
	"regexp"
	"slices"
	"strings"
)

// topicFields are the fields of an event that a topic template may hold.
var topicFields = []string{"aggregate_type", "aggregate_id", "event_type"}

// topicText is what a kind of sink takes around the fields.
var topicText = map[SinkType]struct {
	allowed *regexp.Regexp
	hint    string
}{
	SinkKafka:    {regexp.MustCompile(`^[A-Za-z0-9._-]*$`), "write letters, digits, dots, _ and - around the fields"},
	SinkNATS:     {regexp.MustCompile(`^[^\s*>]*$`), "write it without spaces, * and >"},
	SinkRabbitMQ: {regexp.MustCompile(`^[^\x00-\x1f]*$`), "write EXCHANGE/ROUTING.KEY, or EXCHANGE alone"},
	SinkRedis:    {regexp.MustCompile(`^[^\x00-\x1f]*$`), "write the key of a stream"},
	SinkWebhook:  {regexp.MustCompile(`^[!-~]*$`), "write printable ASCII without spaces: it is a header"},
	SinkStdout:   {regexp.MustCompile(`^\S*$`), "write it without spaces"},
}

var topicField = regexp.MustCompile(`\{([^{}]*)\}`)

// parseTopic takes a template for a sink of the given type.
func parseTopic(text string, sink SinkType) (string, *mistake) {
	for _, field := range topicField.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(topicFields, field[1]) {
			return "", &mistake{"has an unknown field", suggest(field[1], topicFields, "fields")}
		}
	}
	plain := topicField.ReplaceAllString(text, "")
	if strings.ContainsAny(plain, "{}") {
		return "", &mistake{"has a brace that encloses no field", "write {aggregate_type}, or no brace"}
	}
	if rule, ok := topicText[sink]; ok && !rule.allowed.MatchString(plain) {
		return "", &mistake{"is no topic that " + string(sink) + " takes", rule.hint}
	}
	return text, nil
}
