package store

import (
	"os"
	"testing"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/sqlstore"
)

// TestPostgresPlansOfJobs bounds what a step costs when many events have become DEAD since the server last looked.
func TestPostgresPlansOfJobs(t *testing.T) {
	for _, server := range []string{"POSTRIDER_TEST_POSTGRES", "POSTRIDER_TEST_POSTGRES18"} {
		for statistics, rows := range map[string]int{"when every row was pending": 5000, "when the table was empty": 0} {
			for _, kind := range []operator.JobKind{operator.JobRedrive, operator.JobDiscard} {
				t.Run(server+"/"+string(kind)+"/"+statistics, func(t *testing.T) {
					d, plans := newPostgres(t, server), &planLog{}
					d.db = plans.open(t, os.Getenv(server))
					s := d.store(t, sqlstore.Config{})
					execute(t, d.db, "ALTER TABLE "+d.table+" SET (autovacuum_enabled = off)")
					d.addMany(t, 50_000)
					execute(t, d.db, "UPDATE "+d.table+" SET status = 'DEAD', last_error = 'x'")
					d.copyStatistics(t, rows)
					job, err := s.CreateJob(t.Context(), operator.NewJob{Kind: kind, Action: operator.Action{Reason: "test"}})
					if err != nil {
						t.Fatal(err)
					}
					plans.take()
					stepOnce(t, s)
					if pages, most := plans.take().pages(), 40*lookedAt(t, s, job.ID); pages > most {
						t.Errorf("%d pages are touched, want no more than %d", pages, most)
					}
				})
			}
		}
	}
}
