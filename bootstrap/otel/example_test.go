// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package otel_test

import (
	"log/slog"

	api "go.opentelemetry.io/otel"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/otel"
)

// A plan is traced with spans as well as a log.
func ExampleTrace() {
	plan := bootstrap.Plan{Trace: bootstrap.JoinTraces(
		otel.Trace(api.Tracer("agent")),
		bootstrap.LogTrace(slog.Default()),
	)}
	_ = plan
}
