package store

import (
	"testing"

	"github.com/postrider/postrider/storetest"
)

func TestJobs(t *testing.T) {
	t.Parallel()
	opens := map[string]func(t *testing.T) storetest.Harness{
		"sqlite": func(t *testing.T) storetest.Harness { return newHarness(t, newSQLite(t)) },
	}
	for name, server := range map[string]string{"postgres": "POSTRIDER_TEST_POSTGRES", "postgres18": "POSTRIDER_TEST_POSTGRES18"} {
		opens[name] = func(t *testing.T) storetest.Harness { return newHarness(t, newPostgres(t, server)) }
		opens[name+" full"] = func(t *testing.T) storetest.Harness { return full(t, server).harness(t) }
		opens[name+" minimal"] = func(t *testing.T) storetest.Harness { return minimal(t, server).harness(t) }
	}
	for name, server := range mysqlServers {
		opens[name] = func(t *testing.T) storetest.Harness { return newHarness(t, newMySQL(t, server)) }
		opens[name+" full"] = func(t *testing.T) storetest.Harness { return fullMySQL(t, server).harness(t) }
		opens[name+" minimal"] = func(t *testing.T) storetest.Harness { return minimalMySQL(t, server).harness(t) }
	}
	for name, open := range opens {
		t.Run(name, func(t *testing.T) { storetest.RunJobs(t, open) })
	}
}
