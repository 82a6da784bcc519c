// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package reconcile_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
	"github.com/slipway-dev/slipway/cniinstall"
)

// An agent whose plugin is chained into the primary CNI's own file for as long as it runs, with a
// kubeconfig that is renewed. When it is asked to end, all is as it was.
func ExampleLoop() {
	const account, kubeconfig = "/var/run/secrets/kubernetes.io/serviceaccount/", "/etc/cni/net.d/acme-kubeconfig"
	plan := &bootstrap.Plan{
		Host:   hostns.Host{Proc: "/hostproc", LockTimeout: 10 * time.Second},
		Ledger: &ledger.Ledger{Agent: "acme", Owner: os.Getenv("POD_UID")},
		Steps: []bootstrap.Step{
			{Name: "kubeconfig", Prepare: hostpath.Kubeconfig{
				Path: kubeconfig, Server: "https://10.96.0.1:443", CAFile: account + "ca.crt", TokenFile: account + "token",
			}.Prepare},
			{Name: "cni", After: []string{"kubeconfig"}, Wants: cniinstall.Install{
				Config: cniinstall.Chained{Plugin: json.RawMessage(`{"type": "acme", "kubeconfig": "` + kubeconfig + `"}`), InPlace: true},
				Needs:  []string{kubeconfig},
			}},
		},
		Trace: bootstrap.LogTrace(slog.Default()),
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := (reconcile.Loop{Plan: plan}).Run(ctx); err != nil || ctx.Err() == nil {
		slog.Info("the node is another's, or cannot be prepared", "error", err)
		return
	}
	within, cancel := context.WithTimeout(context.Background(), 20*time.Second) // shorter than the grace period
	defer cancel()
	if _, err := plan.Uninstall(within); err != nil {
		slog.Error("not all is undone", "error", err)
	}
}
