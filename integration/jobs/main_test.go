// Package jobs_test lets jobs redrive dead letters while the processes that carry them out are killed. The relays and
// the commands are processes of their own, databases and broker are real.
package jobs_test

import (
	"testing"

	"github.com/postrider/postrider/integration/internal/daemon"
)

var binary string // the postrider command

func TestMain(m *testing.M) { daemon.Main(m, map[*string]string{&binary: "../../cmd/postrider"}) }
