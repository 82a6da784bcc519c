// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package probe_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/probe"
)

func Example() {
	health := &probe.Probe{}
	ask := func() {
		request := httptest.NewRequest("GET", "/healthz", nil)
		request.Header.Set("brief", "true")
		answer := httptest.NewRecorder()
		health.ServeHTTP(answer, request)
		fmt.Print(answer.Code, " ", answer.Body)
	}
	ask()
	missing := bootstrap.Func(
		"mount it", func(context.Context) (bool, error) { return false, errors.New("/sys/fs/bpf: not mounted") }, nil)
	health.Done((&bootstrap.Plan{Steps: []bootstrap.Step{{Name: "bpffs", Action: missing}}}).Apply(context.Background()))
	ask()
	health.Done((&bootstrap.Plan{}).Apply(context.Background()))
	ask()
	// Output:
	// 503 no run of the plan has ended yet
	// 503 step bpffs: check: /sys/fs/bpf: not mounted
	// 200 ok
}
