package operator

import (
	"slices"
	"strings"

	"github.com/postrider/postrider/relay"
)

// circuits lists the states of a circuit from the best to the worst.
var circuits = []string{"closed", "half-open", "open"}

// WorstSinks returns each sink, by name, as the relay sees it that sees it worst. reports holds what each live relay
// tells of its sinks.
func WorstSinks(reports [][]relay.SinkState) []relay.SinkState {
	var worst []relay.SinkState
	for _, sink := range slices.Concat(reports...) {
		i := slices.IndexFunc(worst, func(w relay.SinkState) bool { return w.Name == sink.Name })
		switch {
		case i < 0:
			worst = append(worst, sink)
		case slices.Index(circuits, sink.Circuit) > slices.Index(circuits, worst[i].Circuit):
			worst[i] = sink
		}
	}
	slices.SortFunc(worst, func(a, b relay.SinkState) int { return strings.Compare(a.Name, b.Name) })
	return worst
}
