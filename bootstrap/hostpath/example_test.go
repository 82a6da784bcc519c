// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// What an agent expects is made, and taken back.
func Example() {
	node, err := os.MkdirTemp("", "node")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(node)

	j, err := (&journal.Node{Dir: filepath.Join(node, "state"), Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()
	paths := recorded{hostpath.Paths{
		List: []hostpath.Path{
			{Path: filepath.Join(node, "run/agent"), Type: hostpath.DirectoryOrCreate},
			{Path: filepath.Join(node, "run/agent/pid"), Type: hostpath.FileOrCreate},
		},
	}, j.Step("host-paths")}
	ctx := context.Background()
	show := func(changes []string, err error) {
		fmt.Println(strings.ReplaceAll(strings.Join(changes, ", "), node, ""), err)
	}
	show(paths.Check(ctx))
	fmt.Println("applied", paths.Apply(ctx))
	show(paths.CheckRevert(ctx))
	fmt.Println("reverted", paths.Revert(ctx))
	// Output:
	// make directory /run, make directory /run/agent, make file /run/agent/pid <nil>
	// applied <nil>
	// remove file /run/agent/pid, remove directory /run/agent, remove directory /run <nil>
	// reverted <nil>
}
