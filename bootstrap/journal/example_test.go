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
	"github.com/slipway-dev/slipway/bootstrap/hostns"
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

	files := journal.Files{Kind: "acme"}                       // of acme's agent
	host := hostns.Host{LockFile: filepath.Join(node, "lock")} // the program runs on the host
	remembers := func() *journal.Node {
		return &journal.Node{Dir: filepath.Join(node, "state"), Agent: "acme", Owner: "pod-1", Handlers: []journal.Handler{files}}
	}

	dir := filepath.Join(node, "run", "acme")
	action := bootstrap.Func(
		func(context.Context) ([]string, error) {
			if _, err := os.Stat(dir); err == nil {
				return nil, nil
			}
			return []string{"make " + dir}, nil
		},
		func(ctx context.Context) error { return files.MkdirAll(ctx, journal.From(ctx), dir, 0o755) },
	).In(files.Namespaces()...).Recording(files.Kinds()...)
	plan := bootstrap.Plan{Host: host, Journal: remembers(), Steps: []bootstrap.Step{{Name: "directory", Action: action}}}
	report, err := plan.Apply(context.Background())
	fmt.Println(report.Summary(), err)

	another := bootstrap.Plan{Host: host, Journal: remembers()} // of a process that knows no step
	report, err = another.RevertAll(context.Background())
	for _, change := range report.Results[0].Changes {
		fmt.Println(strings.ReplaceAll(change, node, ""))
	}
	fmt.Println(report.Results[0].Step, report.Results[0].Status, err)
	// Output:
	// 1 step: changed <nil>
	// remove directory /run/acme
	// remove directory /run
	// directory changed <nil>
}

// resolver is an action of acme's own: the node's resolver is the agent's. That is all of it,
// and it may be killed anywhere.
type resolver struct{ path, server string }

// files undo what a resolver records, and obey no record of another file.
func (r resolver) files() journal.Files {
	return journal.Files{Kind: "acme", May: func(path string) error {
		if path != r.path {
			return errors.New("it is not the resolver's configuration")
		}
		return nil
	}}
}

func (r resolver) file() journal.File {
	return journal.File{Content: []byte("nameserver " + r.server + "\n"), Mode: 0o644}
}

func (r resolver) Check(ctx context.Context) (changes []string, err error) {
	written, err := r.files().Written(ctx, journal.From(ctx), r.path, r.file())
	if err == nil && !written {
		changes = []string{"make " + r.server + " the node's resolver"}
	}
	return changes, err
}

func (r resolver) Apply(ctx context.Context) error {
	return r.files().Write(ctx, journal.From(ctx), r.path, r.file())
}

func (r resolver) Kinds() []string      { return r.files().Kinds() }
func (r resolver) Namespaces() []string { return r.files().Namespaces() }

// plan is one for a node whose files are in a directory, which is remembered there.
func (r resolver) plan(node string) *bootstrap.Plan {
	return &bootstrap.Plan{
		Host:    hostns.Host{LockFile: filepath.Join(node, "lock")},
		Journal: &journal.Node{Dir: filepath.Join(node, "state"), Agent: "acme", Owner: "pod-1", Handlers: []journal.Handler{r.files()}},
		Steps:   []bootstrap.Step{{Name: "resolver", Action: r}},
	}
}

// A file is kept before it is changed, however often that is, and comes back.
func ExampleFiles_Write() {
	node, err := os.MkdirTemp("", "node")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(node)
	path := filepath.Join(node, "resolv.conf")
	if err := os.WriteFile(path, []byte("nameserver 192.0.2.1\n"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	show := func(report *bootstrap.Report, err error) {
		content, _ := os.ReadFile(path)
		fmt.Printf("%s %v: %s", report.Results[0].Status, err, content)
	}

	ctx := context.Background()
	for _, server := range []string{"127.0.0.1", "::1", "::1"} {
		show(resolver{path, server}.plan(node).Apply(ctx))
	}
	show(resolver{path: path}.plan(node).RevertAll(ctx))
	// Output:
	// changed <nil>: nameserver 127.0.0.1
	// changed <nil>: nameserver ::1
	// unchanged <nil>: nameserver ::1
	// changed <nil>: nameserver 192.0.2.1
}
