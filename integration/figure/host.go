package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
)

// host lets what was made for tests work in a command. Methods of testing.TB that it does not have panic.
type host struct {
	testing.TB
	ctx      context.Context
	cleanups []func()
}

// failure is what a host panics with.
type failure struct{ error }

// hosted runs f and then all that was to be cleaned up.
func hosted(ctx context.Context, f func(*host) error) error {
	t := &host{ctx: ctx}
	err := t.try(func() error { return f(t) })
	for len(t.cleanups) > 0 {
		last := t.cleanups[len(t.cleanups)-1]
		t.cleanups = t.cleanups[:len(t.cleanups)-1]
		err = errors.Join(err, t.try(func() error { last(); return nil }))
	}
	return err
}

func (t *host) try(f func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.error
		default:
			panic(p)
		}
	}()
	return f()
}

func (t *host) Context() context.Context          { return t.ctx }
func (t *host) Helper()                           {}
func (t *host) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }
func (t *host) Fatal(args ...any)                 { panic(failure{errors.New(fmt.Sprint(args...))}) }
func (t *host) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }
func (t *host) Error(args ...any)                 { t.Fatal(args...) }

func (t *host) TempDir() string {
	dir, err := os.MkdirTemp("", "figure")
	t.must(err)
	t.Cleanup(func() { t.must(os.RemoveAll(dir)) })
	return dir
}

func (t *host) must(err error) {
	if err != nil {
		t.Fatal(err)
	}
}
