package cli

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"

	"github.com/postrider/postrider/sqlstore"
)

var update = flag.Bool("update", false, "write what commands print into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"postrider": func() { os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"sql":   execute,
			"await": await,
			"stop":  stop,
		},
	})
}

// exits CODE COMMAND...: the command exits with the code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func openDatabase(ts *testscript.TestScript, file string) *sql.DB {
	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(ts.MkAbs(file)))
	ts.Check(err)
	return db
}

// sql DATABASE FILE: executes the statements in the file.
func execute(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql DATABASE FILE")
	}
	db := openDatabase(ts, args[0])
	defer db.Close()
	_, err := db.Exec(ts.ReadFile(args[1]))
	ts.Check(err)
}

// await DATABASE QUERY VALUE: waits until the query returns the value.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: await DATABASE QUERY VALUE")
	}
	db := openDatabase(ts, args[0])
	defer db.Close()
	const limit = 30 * time.Second
	got := ""
	for start := time.Now(); time.Since(start) < limit; time.Sleep(10 * time.Millisecond) {
		var value any
		if err := db.QueryRow(args[1]).Scan(&value); err != nil {
			got = err.Error()
		} else if got = fmt.Sprint(value); got == args[2] {
			return
		}
	}
	ts.Fatalf("%s: %s after %v, want %s", args[1], got, limit, args[2])
}

// stop: sends SIGTERM to the commands in the background.
func stop(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: stop")
	}
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}
