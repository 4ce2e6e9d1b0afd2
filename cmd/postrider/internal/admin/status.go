package admin

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"html/template"
	"net/http"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

const (
	statusTimeout = 5 * time.Second
	deadGroups    = 20
	longestWaits  = 20
)

//go:embed status.html
var statusHTML string

var statusPage = template.Must(template.New("status").Funcs(template.FuncMap{
	"seconds": human.Seconds,
	"utc":     human.UTC,
	"job":     human.Job,
	"count":   func(states map[postrider.State]int64, state postrider.State) int64 { return states[state] },
}).Parse(statusHTML))

// view is what the status page shows.
type view struct {
	Relay        string
	Version      string
	At           time.Time
	Health       relay.Health
	Status       *operator.Status // nil when the outbox does not answer
	States       []stateCount
	Waiting      []operator.KeyGroup
	Dead         []operator.DeadGroup
	Jobs         []operator.Job // those that have not ended
	Destinations bool           // there are outboxes of destinations
	Problem      string         // why Status, Dead or Jobs is missing
}

type stateCount struct {
	State postrider.State
	Count int64
}

func (c Config) status(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), statusTimeout)
	defer cancel()
	var page bytes.Buffer
	if err := statusPage.Execute(&page, c.view(ctx)); err != nil {
		c.Logger.Error("the status page could not be made", "error", err)
		http.Error(w, "the status page could not be made; the log tells why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(page.Bytes())
}

func (c Config) view(ctx context.Context) view {
	v := view{Relay: c.Relay, Version: c.Version, At: time.Now(), Health: c.Health()}
	status, statusErr := c.Store.Status(ctx, c.Relay)
	if statusErr == nil {
		v.Status = &status
		v.Destinations = len(status.Destinations) > 0
		v.Waiting = human.Oldest(status.KeyGroups, longestWaits)
		for _, s := range postrider.States() {
			if n := status.States[s]; n > 0 || s != postrider.StateProcessing {
				v.States = append(v.States, stateCount{s, n})
			}
		}
	}
	dead, deadErr := c.Store.DeadGroups(ctx, deadGroups)
	v.Dead = dead
	jobs, jobsErr := c.Jobs(ctx)
	v.Jobs = jobs
	if err := cmp.Or(statusErr, deadErr, jobsErr); err != nil {
		v.Problem = err.Error()
	}
	return v
}
