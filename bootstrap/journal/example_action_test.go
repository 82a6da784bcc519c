// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// resolver is acme's own action: it makes the agent the node's resolver. The journal's
// methods make it safe to kill at any point.
type resolver struct{ path, server string }

// files writes what a resolver records, and undoes it; it refuses an entry about any
// other file.
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
	j := journal.From(ctx)
	written, err := r.files().Written(ctx, j, r.path, r.file())
	if err != nil {
		return nil, err
	}
	if !written {
		changes = []string{"make " + r.server + " the node's resolver"}
	}
	shared, err := j.CheckWishes(ctx, r.files().Wish(r.path, r.file(), written)) // with those of other agents
	return append(changes, shared...), err
}

func (r resolver) Apply(ctx context.Context) error {
	j := journal.From(ctx)
	if err := r.files().Write(ctx, j, r.path, r.file()); err != nil {
		return err
	}
	return j.Wish(ctx, r.files().Wish(r.path, r.file(), true))
}

func (r resolver) Kinds() []string      { return r.files().Kinds() }
func (r resolver) Namespaces() []string { return r.files().Namespaces() }

// plan is for a node whose files, journal and lock are in one directory.
func (r resolver) plan(node string) *bootstrap.Plan {
	return &bootstrap.Plan{
		Host:    hostns.Host{LockFile: filepath.Join(node, "lock")},
		Journal: &journal.Node{Dir: filepath.Join(node, "state"), Agent: "acme", Owner: "pod-1", Handlers: []journal.Handler{r.files()}},
		Steps:   []bootstrap.Step{{Name: "resolver", Action: r}},
	}
}

// An action of your own with the journal. The original is recorded before the first
// change, however many changes follow, and undoing restores it.
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
