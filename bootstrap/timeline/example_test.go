// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package timeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/timeline"
)

// A slow run can be inspected in a browser.
func Example() {
	dir, err := os.MkdirTemp("", "timeline")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	recorder := timeline.Recorder{}
	plan := bootstrap.Plan{
		Trace: recorder.Trace(), // with others: bootstrap.JoinTraces
		Steps: []bootstrap.Step{{Name: "nothing", Action: bootstrap.Func(
			"do nothing", func(context.Context) (bool, error) { return true, nil },
			func(context.Context) error { return nil },
		)}},
	}
	report, err := plan.Apply(context.Background())

	err = errors.Join(err, recorder.WriteFile(filepath.Join(dir, "start.svg")))
	fmt.Println(report.Summary(), err)
	// Output: 1 step: unchanged <nil>
}
