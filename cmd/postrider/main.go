// Command postrider moves events from an outbox table to a broker, and shows and mends what is on its way.
package main

import (
	"os"

	"github.com/postrider/postrider/cmd/postrider/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
}
