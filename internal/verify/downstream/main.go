// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command downstream is the agent of another project. It prepares its node with the
// public packages, under its own names: its configuration, its paths, its drop-in, its
// plugin in another CNI's chain. Two actions are its own. The tests build it in a module
// of its own, outside this tree.
//
//	downstream apply|revert|uninstall    one run
//	downstream run                       applies, and again for each line on standard input
//	downstream guard                     keeps the CNI installation, until it ends
//
// OWNER is the owner; admin may undo the changes of any owner. PLUGINS is where the
// agent's CNI plugins are. It reports each run as a line of JSON, and exits with 3 if the
// node has another owner.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
	"github.com/slipway-dev/slipway/cniinstall"
)

func main() {
	err := run(context.Background(), os.Args[1])
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "downstream:", err)
	if errors.Is(err, journal.ErrNotOwner) || errors.Is(err, journal.ErrRevoked) {
		os.Exit(3)
	}
	os.Exit(1)
}

func run(ctx context.Context, verb string) (err error) {
	owner := os.Getenv("OWNER")
	a := agent{
		plugins: os.DirFS(os.Getenv("PLUGINS")), environ: os.Environ(), host: host{os.Hostname, setHostname},
		owner: owner, anyOwner: owner == "admin",
	}.remembering()
	switch verb {
	case "apply":
		return tell(a.plan().Apply(ctx))
	case "revert":
		return tell(a.plan().Revert(ctx))
	case "run":
		return a.loop(ctx)
	case "guard":
		return a.guard(ctx)
	case "uninstall":
		return tell(a.plan().RevertAll(ctx))
	}
	return fmt.Errorf("unknown verb %q", verb)
}

// outcome is the program's report of a run.
type outcome struct {
	Changed []string // steps that changed something
	Err     string
}

func tell(report *bootstrap.Report, err error) error {
	var o outcome
	for _, r := range report.Results {
		if r.Status == bootstrap.Changed {
			o.Changed = append(o.Changed, r.Step)
		}
	}
	if err != nil {
		o.Err = err.Error()
	}
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(o))
}

// loop runs for each line on standard input, until its end.
func (a agent) loop(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	trigger := make(chan struct{})
	go func() {
		defer stop()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			trigger <- struct{}{}
		}
	}()
	done := func(report *bootstrap.Report, err error) { _ = tell(report, err) }
	err := reconcile.Loop{Plan: a.plan(), Interval: time.Hour, Retry: time.Hour, Trigger: trigger, Done: done}.Run(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (a agent) guard(ctx context.Context) error {
	s, _, err := a.resolve(ctx)
	if err != nil {
		return err
	}
	install, err := a.install(s)
	if err != nil {
		return err
	}
	guard := cniinstall.Guard{Install: install, Lock: func(ctx context.Context) (func() error, error) {
		return a.machine().Lock(ctx, a.owner, nil)
	}}
	return a.plan().Inside(ctx, "cni", install.Namespaces(), guard.Run)
}
