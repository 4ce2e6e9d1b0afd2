package cli

import (
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
)

var update = flag.Bool("update", false, "write what commands print into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"postrider": func() { os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr)) },
		"stubborn":  stubborn,
	})
}

// stubborn does not end when it is told to. It makes the file started, and on the first signal the file stopping.
func stubborn() {
	ctx, stop := untilSignal(os.Stderr)
	defer stop()
	mark("started")
	<-ctx.Done()
	mark("stopping")
	select {}
}

func mark(file string) {
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		panic(err)
	}
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"database":  newDatabase,
			"letters":   newLetters,
			"arrived":   arrived,
			"sql":       execute,
			"insert":    insertDocuments,
			"await":     await,
			"terminate": terminate,
			"file":      awaitFile,
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
	until(ts, func() (got string, done bool) {
		var value any
		if err := db.QueryRow(args[1]).Scan(&value); err != nil {
			return err.Error(), false
		}
		got = fmt.Sprint(value)
		return got, got == args[2]
	})
}

// file FILE: waits until the file is there.
func awaitFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: file FILE")
	}
	until(ts, func() (got string, done bool) {
		_, err := os.Stat(ts.MkAbs(args[0]))
		return fmt.Sprint(err), err == nil
	})
}

// until waits until holds is done. Else it tells what holds got.
func until(ts *testscript.TestScript, holds func() (got string, done bool)) {
	const limit = 30 * time.Second
	got, done := holds()
	for start := time.Now(); !done && time.Since(start) < limit; got, done = holds() {
		<-time.After(10 * time.Millisecond)
	}
	if !done {
		ts.Fatalf("%s after %v", got, limit)
	}
}

// terminate: sends SIGTERM to the commands in the background.
func terminate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: terminate")
	}
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}
