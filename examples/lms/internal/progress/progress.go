// Package progress is the service that follows learners on their way. Its database is PostgreSQL. It consumes LessonCompleted in
// two branches: the steps of missions, and experience points.
package progress

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/examples/lms/internal/event"
	"github.com/postrider/postrider/examples/lms/internal/service"
	"github.com/postrider/postrider/inbox"
)

var (
	//go:embed schema.sql
	schema string
	//go:embed step.sql
	step string
	//go:embed gain.sql
	gain string
)

// Service is safe for concurrent use.
type Service struct {
	db     *sql.DB
	outbox *postrider.Outbox
}

// New returns the service. It talks to nobody; the caller closes the database.
func New(db *sql.DB) (*Service, error) {
	outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL})
	return &Service{db, outbox}, err
}

// Init creates the service's own tables where they are missing. Those of the outbox are made by postrider init.
func (s *Service) Init(ctx context.Context) error { return service.Execute(ctx, s.db, schema) }

// Consume follows the events until ctx ends, in two branches: each gets every event, has receipts of its own, and waits for nothing
// of the other.
func (s *Service) Consume(ctx context.Context, broker service.Broker) error {
	return service.Consume(ctx, s.db, broker,
		service.Branch{
			Inbox:     inbox.Config{Dialect: postrider.PostgreSQL, Consumer: "progress.missions"},
			EventType: event.LessonCompleted,
			Effect:    s.advance,
		},
		service.Branch{
			Inbox:     inbox.Config{Dialect: postrider.PostgreSQL, Consumer: "progress.experience"},
			EventType: event.LessonCompleted,
			Effect:    gainExperience,
		})
}

// advance counts a step of the course's mission. When that completes it, an event tells so, in the same transaction, which holds the
// receipt as well: so a lesson that is delivered again neither counts nor completes anything.
func (s *Service) advance(ctx context.Context, tx *sql.Tx, fresh []inbox.Message) error {
	for _, m := range fresh {
		lesson, err := event.Read[event.Lesson](m)
		if err != nil {
			return err
		}
		mission := event.Mission{Learner: lesson.Learner}
		err = tx.QueryRowContext(ctx, step, lesson.Learner, lesson.Course).Scan(&mission.Mission)
		if errors.Is(err, sql.ErrNoRows) {
			continue // there is more to do
		}
		if err != nil {
			return fmt.Errorf("count a step of %s: %w", lesson.Learner, err)
		}
		if _, err := s.outbox.Add(ctx, tx, event.New(event.MissionCompleted, lesson.Learner, mission, event.After(m))); err != nil {
			return err
		}
	}
	return nil
}

func gainExperience(ctx context.Context, tx *sql.Tx, fresh []inbox.Message) error {
	for _, m := range fresh {
		lesson, err := event.Read[event.Lesson](m)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, gain, lesson.Learner, lesson.Points); err != nil {
			return fmt.Errorf("add points of %s: %w", lesson.Learner, err)
		}
	}
	return nil
}

// Award is a teacher's way to complete a learner's mission. The learner may complete it by lessons as well, before or after: then
// two events, with different ids, ask for the same reward.
func (s *Service) Award(ctx context.Context, learner, mission string) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	if _, err := tx.ExecContext(ctx, "INSERT INTO awards (learner, mission) VALUES ($1, $2)", learner, mission); err != nil {
		return fmt.Errorf("award mission %q: %w", mission, err)
	}
	payload := event.Mission{Learner: learner, Mission: mission}
	if _, err := s.outbox.Add(ctx, tx, event.New(event.MissionCompleted, learner, payload, nil)); err != nil {
		return err
	}
	return tx.Commit()
}
