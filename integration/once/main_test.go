// Package once tests that each event has its effect exactly once, whatever ends the consumer: processes that kill themselves at
// a given point, on real brokers and databases.
//
// POSTRIDER_FULL=1 kills fifty times at each point instead of five.
package once_test

import (
	"os"
	"testing"
)

// childVariable holds the orders of a process that consumes.
const childVariable = "POSTRIDER_TEST_CONSUME"

func TestMain(m *testing.M) {
	if orders := os.Getenv(childVariable); orders != "" {
		consume(orders)
		return
	}
	os.Exit(m.Run())
}
