// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

// A program's own handling of a plan is tested with scripted actions.
func ExampleScript() {
	mount := &bootstraptest.Script{
		Changes:   []string{"mount bpf on /sys/fs/bpf"},
		ApplyErrs: []error{errors.New("operation not permitted")},
	}
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{{Name: "bpffs", Action: mount}}}

	_, err := plan.Apply(context.Background())
	fmt.Println(err)
	_, err = plan.Apply(context.Background())
	fmt.Println(err, mount.Applied())
	fmt.Println(mount.Calls())
	// Output:
	// step bpffs: apply: operation not permitted
	// <nil> true
	// [check apply check apply check]
}
