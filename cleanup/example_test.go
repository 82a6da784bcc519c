// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/slipway-dev/slipway/cleanup"
)

// Destruction is opt-in: without a scope nothing is selected.
func Example() {
	env := map[string]string{"CILIUM_BPF_STATE": "true"}
	lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	fmt.Println(cleanup.CiliumScope(lookup, nil))

	c := cleanup.Leftovers{Ownership: cleanup.Cilium()}
	_, err := c.Inventory(context.Background())
	fmt.Println(err)
	// Output:
	// bpf-state
	// cleanup: no scope selected: choose bpf-state or all-state
}

// Exactly the printed items are removed.
func ExampleLeftovers_Remove() {
	ctx := context.Background()
	c := cleanup.Leftovers{
		Ownership: cleanup.Cilium(),
		Scope:     "all-state",
		Progress: func(done, total int, item string, err error) {
			fmt.Printf("%d/%d %s\n", done, total, item)
		},
	}
	inv, err := c.Inventory(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := inv.WriteText(os.Stdout, 20); err != nil {
		log.Fatal(err)
	}
	if err := c.Remove(ctx, inv.Items); err != nil {
		log.Fatal(err)
	}
}
