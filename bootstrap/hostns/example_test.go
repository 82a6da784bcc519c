// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns_test

import (
	"context"
	"fmt"
	"os"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// A container copies a file of its own into a directory of the host, whose
// /proc is mounted at /hostproc.
func ExampleDo() {
	plugins, err := os.OpenRoot("/opt/plugins") // the container's, even inside
	if err != nil {
		fmt.Println(err)
		return
	}
	defer plugins.Close()

	err = hostns.Do(context.Background(), "/hostproc/1", []string{"mnt"}, func(context.Context) error {
		content, err := plugins.ReadFile("bridge")
		if err != nil {
			return err
		}
		return os.WriteFile("/opt/cni/bin/bridge", content, 0o755) // the host's
	})
	if err != nil {
		fmt.Println(err)
	}
}

// runDirectory wants /run/agent.
type runDirectory struct{}

func (runDirectory) Wants(context.Context) (ledger.Wants, error) {
	list, err := ledger.DirWants("/run/agent", 0o755)
	return ledger.Wants{List: list}, err
}

// A step is checked and applied on the host, whose /proc is mounted at /hostproc.
func ExampleHost() {
	plan := bootstrap.Plan{
		Host:   hostns.Host{Proc: "/hostproc"},
		Ledger: &ledger.Ledger{Agent: "acme", NoOwner: true},
		Steps:  []bootstrap.Step{{Name: "run directory", Wants: runDirectory{}}},
	}
	if _, err := plan.Apply(context.Background()); err != nil {
		fmt.Println(err)
	}
}
