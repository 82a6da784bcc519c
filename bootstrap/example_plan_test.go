// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap"
)

// A run that changes something is logged at level Info, one without changes at level Debug.
func ExampleLogTrace() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if slices.Contains([]string{slog.TimeKey, "elapsed"}, a.Key) {
			return slog.Attr{} // they vary
		}
		return a
	}})
	on := false
	plan := bootstrap.Plan{
		Trace: bootstrap.LogTrace(slog.New(handler)),
		Steps: []bootstrap.Step{{Name: "lamp", Action: bootstrap.Func(
			"turn on the lamp", func(context.Context) (bool, error) { return on, nil },
			func(context.Context) error { on = true; return nil },
		)}},
	}
	for range 2 {
		if _, err := plan.Apply(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// level=INFO msg="step done" op=apply step=lamp status=changed changes="[turn on the lamp]"
	// level=INFO msg="plan done" op=apply summary="1 step: changed"
}
