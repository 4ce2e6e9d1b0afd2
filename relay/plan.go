package relay

import "slices"

// Plan is where an event would go.
type Plan struct {
	Route   int // index in Config.Routes
	Sink    NamedSink
	Message Message
}

// PlanOf tells where the routes of a configuration send an event, without sending it; found is false when no route
// matches. Only Sinks and Routes of the configuration count, and no Sink is called but for its CloudEvents. The error
// reports every mistake of the routes.
func PlanOf(c Config, e Event) (p Plan, found bool, err error) {
	routes, err := c.resolveRoutes()
	if err != nil {
		return p, false, err
	}
	r := routeOf(routes, e.Kind())
	if r == nil {
		return p, false, nil
	}
	return Plan{Route: slices.Index(routes, r), Sink: c.Sinks[r.sink], Message: r.message(&e)}, true, nil
}
