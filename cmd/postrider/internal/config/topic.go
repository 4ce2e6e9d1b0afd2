package config

import (
	"regexp"

	"github.com/postrider/postrider/relay"
)

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

// parseTopic takes a template for a sink of the given type.
func parseTopic(text string, sink SinkType) (string, *mistake) {
	plain, wrong := checkTemplate(text, relay.TopicFields())
	if wrong != nil {
		return "", wrong
	}
	if rule, ok := topicText[sink]; ok && !rule.allowed.MatchString(plain) {
		return "", &mistake{"is no topic that " + string(sink) + " takes", rule.hint}
	}
	return text, nil
}
