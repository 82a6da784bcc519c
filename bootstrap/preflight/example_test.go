// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package preflight_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/preflight"
)

// An agent that needs something of the kernel says so before anything is changed.
func Example() {
	peer := preflight.Feature{Name: "the helper bpf_redirect_peer", Since: "5.10", Have: func() error {
		return fmt.Errorf("not here: %w", errors.ErrUnsupported) // features.HaveProgramHelper(ebpf.SchedCLS, asm.FnRedirectPeer)
	}}
	plan := bootstrap.Plan{Steps: []bootstrap.Step{
		{Name: "preflight", Action: preflight.Checks{
			{Name: "kernel", Find: preflight.Kernel("Acme", peer)},
			{Name: "api-server", Find: preflight.APIServer([]string{"https://api.example.org:6443"}, nil)},
		}},
	}}
	_, err := plan.Check(context.Background())
	fmt.Println(bootstrap.Code(err))
	fmt.Println(err)

	// Output:
	// preflight.kernel-feature
	// step preflight: check: kernel: the kernel lacks the helper bpf_redirect_peer, without which Acme does not start (boot Linux 5.10 or newer, or a kernel with a backport of it): not here: unsupported operation
}
