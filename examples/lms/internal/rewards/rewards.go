// Package rewards is the service that pays for completed missions. Its database is MariaDB or MySQL.
package rewards

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/examples/lms/internal/event"
	"github.com/postrider/postrider/examples/lms/internal/service"
	"github.com/postrider/postrider/inbox"
)

var (
	//go:embed schema.sql
	schema string
	//go:embed complete.sql
	complete string
	//go:embed pay.sql
	pay string
)

// Coins is what each quest is worth.
const Coins = 50

// Service is safe for concurrent use.
type Service struct {
	db     *sql.DB
	outbox *postrider.Outbox
}

// New returns the service. It talks to nobody; the caller closes the database.
func New(db *sql.DB) (*Service, error) {
	outbox, err := postrider.New(postrider.Config{Dialect: postrider.MySQL})
	return &Service{db, outbox}, err
}

// Init creates the service's own tables where they are missing. Those of the outbox are made by postrider init.
func (s *Service) Init(ctx context.Context) error { return service.Execute(ctx, s.db, schema) }

// Consume follows the events until ctx ends. Its receipts are for what is asked for, and not for the event that asks: whoever
// completed a mission by lessons and was awarded it as well gets one reward.
func (s *Service) Consume(ctx context.Context, broker service.Broker) error {
	return service.Consume(ctx, s.db, broker, service.Branch{
		Inbox:     inbox.Config{Dialect: postrider.MySQL, Consumer: "rewards", DedupKey: rewardKey},
		EventType: event.MissionCompleted,
		Effect:    s.grant,
	})
}

func rewardKey(m inbox.Message) (string, error) {
	mission, err := event.Read[event.Mission](m)
	if err != nil {
		return "", err
	}
	return inbox.BusinessKey("reward", mission.Learner, mission.Mission)
}

// grant completes the quest of the mission's name, pays for it, and tells so, in the transaction that holds the receipt. To
// complete a quest twice would do no harm; to pay twice would.
func (s *Service) grant(ctx context.Context, tx *sql.Tx, fresh []inbox.Message) error {
	for _, m := range fresh {
		mission, err := event.Read[event.Mission](m)
		if err != nil {
			return err
		}
		reward := event.Reward{Learner: mission.Learner, Quest: mission.Mission, Coins: Coins}
		if _, err := tx.ExecContext(ctx, complete, reward.Learner, reward.Quest); err != nil {
			return fmt.Errorf("complete quest %q of %s: %w", reward.Quest, reward.Learner, err)
		}
		if _, err := tx.ExecContext(ctx, pay, reward.Learner, reward.Coins); err != nil {
			return fmt.Errorf("pay %s: %w", reward.Learner, err)
		}
		if _, err := s.outbox.Add(ctx, tx, event.New(event.RewardGranted, reward.Learner, reward, event.After(m))); err != nil {
			return err
		}
	}
	return nil
}
