// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command agent is somebody else's agent, in a module of its own: what it needs
// of a node, it gets through the public packages, and one action is its own.
//
//	agent apply|revert|uninstall            one run, for OWNER
//	agent reconcile                         applies, and again for each line on standard input
//	agent guard                             keeps the CNI installation, until it ends
//
// WITHOUT names a step that is switched off. It exits with 3 when the node is
// somebody else's.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/flock"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/sysctl"
)

func main() {
	err := run(context.Background(), os.Args[1])
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "agent:", err)
	if errors.Is(err, journal.ErrNotOwner) || errors.Is(err, journal.ErrRevoked) {
		os.Exit(3)
	}
	os.Exit(1)
}

func run(ctx context.Context, command string) (err error) {
	j, err := journal.Open("/var/lib/acme", journal.Options{
		Owner:    os.Getenv("OWNER"),
		AnyOwner: command == "uninstall",
		Handlers: []journal.Handler{
			hostpath.Handler{}, cgroup.Handler{}, bpffs.Handler{}, sysctl.Handler{}, cniinstall.Handler{}, configdir.Handler{}, hostnames{},
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	plan, install, err := node(ctx, j)
	if err != nil {
		return err
	}
	switch command {
	case "apply":
		return show(plan.Apply(ctx))
	case "revert":
		return show(plan.Revert(ctx))
	case "reconcile":
		return reconcile(ctx, plan)
	case "guard":
		guard := cniinstall.Guard{Install: install, Lock: plan.Lock}
		return guard.Run(j.WithStep(ctx, "cni"))
	case "uninstall":
		undone, err := j.RevertAll(ctx)
		for _, u := range undone {
			fmt.Println(u.Entry.Step, u.Change)
		}
		return err
	}
	return fmt.Errorf("unknown command %q", command)
}

func show(report *bootstrap.Report, err error) error {
	return errors.Join(report.WriteText(os.Stdout), err)
}

func reconcile(ctx context.Context, plan *bootstrap.Plan) error {
	lines := bufio.NewScanner(os.Stdin)
	for {
		if err := show(plan.Apply(ctx)); err != nil {
			return err
		}
		fmt.Println("applied")
		if !lines.Scan() {
			return lines.Err()
		}
	}
}

// node is what this agent needs of its node.
func node(ctx context.Context, j *journal.Journal) (*bootstrap.Plan, cniinstall.Install, error) {
	source, err := configresolve.ParseSpecs([]string{"env:ACME_"}, configresolve.SpecDefaults{})
	if err != nil {
		return nil, cniinstall.Install{}, err
	}
	env, err := source[0].Source(os.Environ())
	if err != nil {
		return nil, cniinstall.Install{}, err
	}
	config, err := configresolve.Resolve(ctx, env)
	if err != nil {
		return nil, cniinstall.Install{}, err
	}
	install := cniinstall.Install{
		Plugins: os.DirFS(os.Getenv("PLUGINS")), Optional: []string{"loopback"},
		Config:   cniinstall.Whole(`{"cniVersion":"1.0.0","name":"acme","plugins":[{"type":"acme-cni"}]}`),
		ConfName: "05-acme.conflist", Exclusive: true, Journal: j,
	}
	plan := &bootstrap.Plan{
		Journal: j,
		Lock:    flock.File{Owner: os.Getenv("OWNER"), Timeout: 10 * time.Second}.Lock,
		Steps: []bootstrap.Step{
			{Name: "config", Action: configdir.Dir{Path: "/etc/acme/config", Config: config, Journal: j}},
			{Name: "paths", Action: hostpath.Paths{Journal: j, List: []hostpath.Path{{Path: "/run/acme/state", Type: hostpath.DirectoryOrCreate}}}},
			{Name: "cgroup", Action: cgroup.Mount{Path: "/run/acme/cgroupv2", Journal: j}},
			{Name: "bpffs", Action: bpffs.Mount{Journal: j}},
			{Name: "drop-in", Action: sysctl.DropIn{Name: "99-acme.conf", Settings: settings("net.ipv4.conf.all.rp_filter", "0"), Journal: j}},
			{Name: "forwarding", Action: sysctl.Settings{Values: sysctl.Forwarding(), Journal: j}},
			{Name: "hostname", Action: hostname{"acme-node", j}},
			{Name: "cni", After: []string{"bpffs", "cgroup"}, Action: install},
		},
	}
	for i, s := range plan.Steps {
		if s.Name == os.Getenv("WITHOUT") {
			plan.Steps[i] = bootstrap.Step{Name: s.Name, Absent: true}
		}
	}
	return plan, install, nil
}

func settings(key sysctl.Key, value string) []sysctl.Setting {
	return []sysctl.Setting{{Key: key, Value: value}}
}
