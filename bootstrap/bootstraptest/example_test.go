// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bpffs"
)

// Scripted actions test how a program handles a plan.
func ExampleScript() {
	mount := &bootstraptest.Script{
		Changes: []string{"mount bpf on /sys/fs/bpf"},
		Errs:    map[string][]error{"apply": {errors.New("operation not permitted")}},
	}
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{{Name: "bpffs", Action: mount}}}

	_, err := plan.Apply(context.Background())
	fmt.Println(err)
	_, err = plan.Apply(context.Background())
	fmt.Println(err)
	fmt.Println(mount.Calls())
	// Output:
	// step bpffs: apply: operation not permitted
	// <nil>
	// [check check apply check check check apply check]
}

// reporter prints what a *testing.T would report.
type reporter struct{ testing.TB }

func (reporter) Helper()                           {}
func (reporter) Context() context.Context          { return context.Background() }
func (reporter) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// motd is an action that writes a file; its Undo removes it.
type motd struct{ path string }

func (m motd) Check(ctx context.Context) ([]string, error) {
	if content, err := os.ReadFile(m.path); err == nil && string(content) == "welcome" {
		return nil, ctx.Err()
	}
	return []string{"write " + m.path}, ctx.Err()
}

func (m motd) Apply(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return os.WriteFile(m.path, []byte("welcome"), 0o644)
}

func (m motd) CheckUndo(ctx context.Context) ([]string, error) {
	if changes, err := m.Check(ctx); err != nil || len(changes) > 0 {
		return nil, err // it is not as the action wrote it
	}
	return []string{"remove " + m.path}, nil
}

func (m motd) Undo(ctx context.Context) error {
	if changes, err := m.CheckUndo(ctx); err != nil || len(changes) == 0 {
		return err
	}
	return os.Remove(m.path)
}

// Conform tests an action by its answers, and by its effect on the node: here Undo does not
// restore the earlier file, as a ledger would.
func ExampleConform() {
	var t reporter // in a test, its *testing.T

	dir, err := os.MkdirTemp("", "node-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "motd")
	if err := os.WriteFile(path, []byte("hello"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	state := func() map[string]string {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		return map[string]string{"motd": string(content)}
	}
	bootstraptest.Conform(t, func() bootstrap.Action { return motd{path} }, state)
	// Output:
	// the action breaks the contract: the node differs after Undo: motd is gone (was "hello")
}

// A test on the running kernel leaves the machine as it is.
func ExampleNewNode() {
	test := func(t *testing.T) { // as func TestBPFFS, say
		node := bootstraptest.NewNode(t) // skips without root
		err := node.Do(t.Context(), func(ctx context.Context) error {
			return bpffs.Mount{}.Apply(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := node.Command("stat", "-f", "-c", "%T", "/sys/fs/bpf").Output()
		if err != nil || string(out) != "bpf_fs\n" {
			t.Fatal(string(out), err)
		}
	}
	_ = test
}
