// Package lessons is the service in which learners complete lessons. Its database is PostgreSQL.
package lessons

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"os"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/examples/lms/internal/event"
	"github.com/postrider/postrider/examples/lms/internal/service"
)

var (
	//go:embed schema.sql
	schema string
	//go:embed complete.sql
	complete string
)

// Service is safe for concurrent use.
type Service struct {
	db     *sql.DB
	outbox *postrider.Outbox
}

// New returns the service. It talks to nobody; the caller closes the database.
func New(db *sql.DB) (*Service, error) {
	outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL, Trace: trace})
	return &Service{db, outbox}, err
}

// trace stands for what a service takes from its requests: here the trace is in the environment of the command.
func trace(context.Context) map[string]string {
	if parent := os.Getenv("TRACEPARENT"); parent != "" {
		return map[string]string{"traceparent": parent}
	}
	return nil
}

// Init creates the service's own tables where they are missing. Those of the outbox are made by postrider init.
func (s *Service) Init(ctx context.Context) error { return service.Execute(ctx, s.db, schema) }

// Complete notes that a learner has completed a lesson, and adds the event that tells it, in one transaction: both are there or
// neither. A lesson that was completed before is left as it is, and isNew is false.
func (s *Service) Complete(ctx context.Context, learner, lesson string) (isNew bool, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() // after Commit it does nothing

	done := event.Lesson{Learner: learner, Lesson: lesson}
	err = tx.QueryRowContext(ctx, complete, learner, lesson).Scan(&done.Course, &done.Points)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("complete lesson %q: %w", lesson, err)
	}
	if _, err := s.outbox.Add(ctx, tx, event.New(event.LessonCompleted, learner, done, nil)); err != nil {
		return false, err
	}
	return true, tx.Commit()
}
