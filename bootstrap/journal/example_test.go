// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// An action of your own records what it makes, and another process undoes it.
func Example() {
	node, err := os.MkdirTemp("", "node")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(node)

	files := journal.Files{Kind: "acme"} // of acme's agent
	options := journal.Options{Owner: "pod-1", Handlers: []journal.Handler{files}}
	j, err := journal.Open(filepath.Join(node, "state"), options)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()

	dir := filepath.Join(node, "run", "acme")
	plan := bootstrap.Plan{Journal: j, Steps: []bootstrap.Step{{Name: "directory", Action: bootstrap.Func(
		func(context.Context) ([]string, error) {
			if _, err := os.Stat(dir); err == nil {
				return nil, nil
			}
			return []string{"make " + dir}, nil
		},
		func(ctx context.Context) error { return files.MkdirAll(ctx, j, dir, 0o755) },
	)}}}
	report, err := plan.Apply(context.Background())
	fmt.Println(report.Summary(), err)

	another, err := journal.Open(filepath.Join(node, "state"), options)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer another.Close()
	undone, err := another.RevertAll(context.Background())
	for _, u := range undone {
		fmt.Println(strings.ReplaceAll(u.Change, node, ""), u.Err)
	}
	fmt.Println(err)
	// Output:
	// 1 step: changed <nil>
	// remove directory /run/acme <nil>
	// remove directory /run <nil>
	// <nil>
}

// A file is kept before it is changed, however often that is, and comes back.
func ExampleFiles() {
	node, err := os.MkdirTemp("", "node")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(node)
	path := filepath.Join(node, "resolv.conf")
	files := journal.Files{Kind: "acme", May: func(p string) error { // what is recorded of anything else is not obeyed
		if p != path {
			return errors.New("it is not the agent's")
		}
		return nil
	}}
	j, err := (&journal.Node{Dir: filepath.Join(node, "state"), Agent: "test", NoOwner: true, Handlers: []journal.Handler{files}}).Open(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()

	ctx := j.WithStep(context.Background(), "dns") // a plan does so for its steps
	write := func(content string) error { return os.WriteFile(path, []byte(content), 0o644) }
	if err := write("nameserver 192.0.2.1"); err != nil {
		fmt.Println(err)
		return
	}
	for _, content := range []string{"nameserver 127.0.0.1", "nameserver ::1"} {
		err := errors.Join(
			files.Begin(ctx, j, path, journal.State{Type: "file"}),
			write(content),
			files.Complete(ctx, j, path),
		)
		fmt.Println(err)
	}
	fmt.Println(j.Revert(ctx))
	content, err := os.ReadFile(path)
	fmt.Println(string(content), err)
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// nameserver 192.0.2.1 <nil>
}
