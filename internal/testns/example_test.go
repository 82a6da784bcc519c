// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/slipway-dev/slipway/internal/testns"
)

func Example() {
	ctx := context.Background()
	node, err := testns.StartNode(ctx, testns.NodeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()

	if err := node.Do(ctx, func(context.Context) error { return os.Mkdir("/opt/cni", 0o755) }); err != nil {
		fmt.Println(err)
	}
	ls := exec.CommandContext(ctx, "ls", "/opt")
	ls.Stdout = os.Stdout
	if err := node.StartCommand(ls); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ls.Wait())
}
