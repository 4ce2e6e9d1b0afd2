// Lms is an example of three services on the way from a lesson to its reward, each step of which happens once. See README.md.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx

	"github.com/postrider/postrider/examples/lms/internal/lessons"
	"github.com/postrider/postrider/examples/lms/internal/progress"
	"github.com/postrider/postrider/examples/lms/internal/rewards"
	"github.com/postrider/postrider/examples/lms/internal/service"
	"github.com/postrider/postrider/sqlstore"
)

const usage = `usage:
  lms init                       creates the tables of the services
  lms complete LEARNER LESSON... the lessons service: completes lessons
  lms award LEARNER MISSION      the progress service: a teacher completes a mission
  lms progress                   the progress service: consumes until it is told to stop
  lms rewards                    the rewards service: consumes until it is told to stop
  lms show LEARNER               tells what the services have about a learner`

func main() {
	log.SetFlags(log.Ltime)
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// app has all services. In earnest each is a program of its own, and knows its own database alone.
type app struct {
	db       struct{ lessons, progress, rewards *sql.DB }
	lessons  *lessons.Service
	progress *progress.Service
	rewards  *rewards.Service
}

// open connects to nothing yet.
func open() (*app, error) {
	dsn, err := sqlstore.MySQLDSN(os.Getenv("REWARDS_DB"))
	if err != nil {
		return nil, fmt.Errorf("REWARDS_DB: %w", err)
	}
	var a app
	var errs [6]error
	a.db.lessons, errs[0] = sql.Open("pgx", os.Getenv("LESSONS_DB"))
	a.db.progress, errs[1] = sql.Open("pgx", os.Getenv("PROGRESS_DB"))
	a.db.rewards, errs[2] = sql.Open("mysql", dsn)
	a.lessons, errs[3] = lessons.New(a.db.lessons)
	a.progress, errs[4] = progress.New(a.db.progress)
	a.rewards, errs[5] = rewards.New(a.db.rewards)
	return &a, errors.Join(errs[:]...)
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a, err := open()
	if err != nil {
		return err
	}
	broker := service.Broker{
		Address:  os.Getenv("REDIS"),
		Prefix:   cmp.Or(os.Getenv("LMS_PREFIX"), "lms."),
		Instance: cmp.Or(os.Getenv("LMS_INSTANCE"), "one"),
	}
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch command, args := args[0], args[1:]; {
	case command == "init" && len(args) == 0:
		return errors.Join(a.lessons.Init(ctx), a.progress.Init(ctx), a.rewards.Init(ctx))
	case command == "complete" && len(args) > 1:
		return a.complete(ctx, args[0], args[1:])
	case command == "award" && len(args) == 2:
		return a.progress.Award(ctx, args[0], args[1])
	case command == "progress" && len(args) == 0:
		return a.progress.Consume(ctx, broker)
	case command == "rewards" && len(args) == 0:
		return a.rewards.Consume(ctx, broker)
	case command == "show" && len(args) == 1:
		return a.show(ctx, args[0])
	default:
		return errors.New(usage)
	}
}

func (a *app) complete(ctx context.Context, learner string, ids []string) error {
	for _, lesson := range ids {
		isNew, err := a.lessons.Complete(ctx, learner, lesson)
		if err != nil {
			return err
		}
		fmt.Printf("%s has completed %s, for the first time: %t\n", learner, lesson, isNew)
	}
	return nil
}

func (a *app) show(ctx context.Context, learner string) error {
	for _, fact := range []struct {
		db          *sql.DB
		name, query string
	}{
		{a.db.lessons, "lessons completed", "SELECT count(*) FROM completions WHERE learner = $1"},
		{a.db.progress, "steps of missions", "SELECT coalesce(sum(steps), 0) FROM mission_steps WHERE learner = $1"},
		{a.db.progress, "experience points", "SELECT coalesce(sum(points), 0) FROM experience WHERE learner = $1"},
		{a.db.rewards, "quests completed", "SELECT count(*) FROM quests WHERE learner = ?"},
		{a.db.rewards, "coins", "SELECT coalesce(sum(coins), 0) FROM purses WHERE learner = ?"},
	} {
		var n int
		if err := fact.db.QueryRowContext(ctx, fact.query, learner).Scan(&n); err != nil {
			return fmt.Errorf("%s: %w", fact.name, err)
		}
		fmt.Printf("%-18s %3d\n", fact.name, n)
	}
	return nil
}
