// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package prom_test

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/prom"
)

// A plan has metrics as well as a log.
func ExampleTrace() {
	trace, err := prom.Trace(prometheus.DefaultRegisterer)
	if err != nil {
		panic(err)
	}
	plan := bootstrap.Plan{Trace: bootstrap.JoinTraces(trace, bootstrap.LogTrace(slog.Default()))}
	_ = plan
}
