package mongo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/postrider/postrider/operator"
)

// privilege is what a user may do to collections. Empty names mean any.
type privilege struct {
	Resource struct {
		DB         string `bson:"db"`
		Collection string `bson:"collection"`
		Any        bool   `bson:"anyResource"`
		Cluster    bool   `bson:"cluster"` // the cluster itself, and no collection
	} `bson:"resource"`
	Actions []string `bson:"actions"`
}

// verifyPrivileges reports what the user of the connection may not do. A server without access control asks for no user.
func (s *Store) verifyPrivileges(ctx context.Context) (findings []operator.Finding, err error) {
	var status struct {
		Auth struct {
			Users      []bson.Raw  `bson:"authenticatedUsers"`
			Privileges []privilege `bson:"authenticatedUserPrivileges"`
		} `bson:"authInfo"`
	}
	err = s.events.Database().RunCommand(ctx, bson.D{{Key: "connectionStatus", Value: 1}, {Key: "showPrivileges", Value: true}}).Decode(&status)
	if err != nil || len(status.Auth.Users) == 0 {
		return nil, err
	}
	db := s.events.Database().Name()
	for _, need := range s.needs() {
		if missing := missingActions(status.Auth.Privileges, db, need.collection, strings.Fields(need.actions)); len(missing) > 0 {
			findings = append(findings, operator.Problem("collection "+need.collection, "no privilege to "+strings.Join(missing, ", "),
				fmt.Sprintf("grant the user in outbox.dsn a role with the actions %s on {db: %q, collection: %q}; readWrite has them",
					strings.Join(missing, ", "), db, need.collection)))
		}
	}
	return findings, nil
}

// need is what the relay's user must be allowed to do.
type need struct{ collection, actions string }

func (s *Store) needs() []need {
	needs := []need{
		{s.shards.Name(), "find insert update"},
		{s.relays.Name(), "find insert update remove"},
		{s.attempts.Name(), "find insert remove"},
		{s.holds.Name(), "find insert update remove"},
		{s.jobs.Name(), "find insert update remove"},
		{s.jobEvents.Name(), "find insert remove"},
		{s.schema.Name(), "find"},
	}
	switch {
	case s.theirs == nil:
		return append(needs, need{s.events.Name(), "find update remove"}, need{s.versions.Name(), "find insert update"})
	case s.config.DeletePublished:
		return append(needs, need{s.events.Name(), "find update remove"}, need{s.failures.Name(), "find insert update remove"})
	}
	return append(needs, need{s.events.Name(), "find update"}, need{s.failures.Name(), "find insert update remove"})
}

// missingActions returns those actions on the collection that no privilege allows.
func missingActions(have []privilege, db, collection string, actions []string) (missing []string) {
	for _, action := range actions {
		if !slices.ContainsFunc(have, func(p privilege) bool { return p.allows(db, collection, action) }) {
			missing = append(missing, action)
		}
	}
	return missing
}

func (p privilege) allows(db, collection, action string) bool {
	r := p.Resource
	covers := r.Any || !r.Cluster && (r.DB == "" || r.DB == db) && (r.Collection == "" || r.Collection == collection)
	return covers && (slices.Contains(p.Actions, action) || slices.Contains(p.Actions, "anyAction"))
}
