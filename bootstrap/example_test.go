// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap"
)

// A plan is checked, applied, and applied again.
func Example() {
	dir, err := os.MkdirTemp("", "node")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	directory := func(name string) bootstrap.Action {
		path := filepath.Join(dir, name)
		return bootstrap.Func(
			"make directory "+name,
			func(context.Context) (bool, error) {
				_, err := os.Stat(path)
				if errors.Is(err, os.ErrNotExist) {
					return false, nil
				}
				return true, err
			},
			func(context.Context) error { return os.MkdirAll(path, 0o755) },
		)
	}
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{
		{Name: "run", Action: directory("run")},
		{Name: "agent", Action: directory("run/agent"), After: []string{"run"}},
	}}

	ctx := context.Background()
	for _, run := range []func(context.Context) (*bootstrap.Report, error){plan.Check, plan.Apply, plan.Apply} {
		report, err := run(ctx)
		if err != nil {
			fmt.Println(err)
		}
		for _, r := range report.Results {
			fmt.Println(r.Step, r.Status, r.Changes)
		}
	}
	// Output:
	// run would-change [make directory run]
	// agent would-change [make directory run/agent]
	// run changed [make directory run]
	// agent changed [make directory run/agent]
	// run unchanged []
	// agent unchanged []
}

// A program prints each step when it is done, and at the end why the plan failed.
func ExampleTrace() {
	wait := bootstrap.Func(
		"wait for the API server", func(context.Context) (bool, error) { return false, nil },
		func(context.Context) error { return errors.New("connection refused") },
	)
	plan := &bootstrap.Plan{
		Steps: []bootstrap.Step{
			{Name: "gates", Action: wait},
			{Name: "config", Action: wait, After: []string{"gates"}},
		},
		Trace: &bootstrap.Trace{StepDone: func(_ context.Context, _ string, r bootstrap.Result) {
			fmt.Println(r.Step, r.Status)
		}},
	}
	_, err := plan.Apply(context.Background())
	var failure *bootstrap.StepError
	if errors.As(err, &failure) {
		fmt.Println("could not", failure.Op, failure.Step, "-", failure.Err)
	}
	// Output:
	// gates failed
	// config blocked
	// could not apply gates - connection refused
}
