// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// The agent writes and later removes a kubeconfig that a CNI plugin refreshes.
func ExampleContent() {
	node, err := os.MkdirTemp("", "node")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(node)
	path := filepath.Join(node, "net.d/acme-kubeconfig")
	plan := bootstrap.Plan{
		Host:   hostns.Host{LockFile: filepath.Join(node, "lock")}, // the program runs on the host
		Ledger: &ledger.Ledger{Dir: filepath.Join(node, "state"), Agent: "acme", Owner: "pod-1"},
		Steps: []bootstrap.Step{{Name: "kubeconfig", Wants: hostpath.Content{
			Path: path, Bytes: []byte("a token"), Parents: true, Secret: true, Rewritten: true,
		}}},
	}
	show := func(report *bootstrap.Report, err error) {
		changes := strings.Join(report.Results[0].Changes, ", ")
		fmt.Println(report.Results[0].Status, strings.ReplaceAll(changes, node, ""), err)
	}

	ctx := context.Background()
	show(plan.Apply(ctx))
	if err := os.WriteFile(path, []byte("a token for the next hour"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	show(plan.Apply(ctx))
	show(plan.Uninstall(ctx))
	// Output:
	// changed make directory /net.d, write file /net.d/acme-kubeconfig <nil>
	// unchanged  <nil>
	// changed remove file /net.d/acme-kubeconfig, remove directory /net.d <nil>
}

// The paths that an agent expects are made, and removed again.
func Example() {
	node, err := os.MkdirTemp("", "node")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(node)

	plan := bootstrap.Plan{
		Host:   hostns.Host{LockFile: filepath.Join(node, "lock")}, // the program runs on the host
		Ledger: &ledger.Ledger{Dir: filepath.Join(node, "state"), Agent: "agent", NoOwner: true},
		Steps: []bootstrap.Step{{Name: "host-paths", Wants: hostpath.Paths{
			{Path: filepath.Join(node, "run/agent"), Type: "DirectoryOrCreate"},
			{Path: filepath.Join(node, "run/agent/pid"), Type: "FileOrCreate"},
		}}},
	}
	show := func(report *bootstrap.Report, err error) {
		changes := strings.Join(report.Results[0].Changes, ", ")
		fmt.Println(strings.ReplaceAll(changes, node, ""), err)
	}
	ctx := context.Background()
	show(plan.Check(ctx))
	show(plan.Apply(ctx))
	show(plan.Uninstall(ctx))
	// Output:
	// make directory /run, make directory /run/agent, make file /run/agent/pid <nil>
	// make directory /run, make directory /run/agent, make file /run/agent/pid <nil>
	// remove file /run/agent/pid, remove directory /run/agent, remove directory /run <nil>
}
