package postrider

import (
	"maps"
	"strings"
)

// withTrace returns an event's own headers and those of traced that it lacks. A traceparent of its own comes from
// another trace, to which the tracestate of traced does not belong.
func withTrace(own, traced map[string]string) map[string]string {
	if len(traced) == 0 {
		return own
	}
	headers := maps.Clone(traced)
	for name := range own {
		deleteFold(headers, name)
		if strings.EqualFold(name, "traceparent") {
			deleteFold(headers, "tracestate")
		}
	}
	maps.Copy(headers, own)
	return headers
}

func deleteFold(headers map[string]string, name string) {
	maps.DeleteFunc(headers, func(other, _ string) bool { return strings.EqualFold(other, name) })
}
