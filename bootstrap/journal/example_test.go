// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// An action of your own records its changes, and another process undoes them.
func Example() {
	node, err := os.MkdirTemp("", "node")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(node)

	files := journal.Files{Kind: "acme"}                       // acme is the agent's name
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

	another := bootstrap.Plan{Host: host, Journal: remembers()} // a process that has no steps
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
