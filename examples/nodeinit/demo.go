// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/throwaway"
)

//go:embed demodata
var demoData embed.FS

// filterSetting drops packets of pods if it is left as distributions set it.
const filterSetting = "/proc/sys/net/ipv4/conf/all/rp_filter"

func (a *app) demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "demo", Args: arguments(0), Annotations: map[string]string{runsForever: "ends by itself"},
		Short: "Show all of it on a throw-away node made of namespaces; needs root",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Geteuid() != 0 {
				return errors.New("the demo makes namespaces and mounts in them, for which it needs root; type: sudo go run ./examples/nodeinit demo")
			}
			a.ends.Store(false) // it takes its node away first
			return a.demo(cmd.Context())
		},
	}
	return c
}

// demo plays a pod that prepares its host: this process is the pod, the
// throw-away node is the host.
func (a *app) demo(ctx context.Context) (err error) {
	scratch, err := os.MkdirTemp("", "nodeinit-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	node, err := throwaway.Start(ctx, throwaway.Options{Hostname: "demo-node"})
	if err != nil {
		return fmt.Errorf("make a throw-away node: %w", err)
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	if err := a.demoOptions(scratch, node); err != nil {
		return err
	}

	a.say("A throw-away node: namespaces of its own, on this kernel. Nothing of this machine is touched.")
	if err := distributionDefaults(ctx, node); err != nil {
		return err
	}
	before, err := demoSnapshot(ctx, node)
	if err != nil {
		return err
	}
	return a.scenes(
		func() error { return a.scene("apply", ctx, a.expect(bootstrap.Changed, (*bootstrap.Plan).Apply)) },
		func() error {
			return a.scene("apply again: nothing to do", ctx, a.expect(bootstrap.Unchanged, (*bootstrap.Plan).Apply))
		},
		func() error { return a.breakThings(ctx, node) },
		func() error { return a.scene("check: what is wrong now", ctx, (*bootstrap.Plan).Check) },
		func() error { return a.scene("apply: repair that, and nothing else", ctx, (*bootstrap.Plan).Apply) },
		func() error {
			return a.scene("check: all is well", ctx, a.expect(bootstrap.Unchanged, (*bootstrap.Plan).Check))
		},
		func() error { return a.demoUninstall(ctx) },
		func() error { return a.nothingLeft(ctx, node, before) },
	)
}

// demoOptions are the flags that a pod's manifest would give.
func (a *app) demoOptions(scratch string, node *throwaway.Node) error {
	if err := os.CopyFS(scratch, demoData); err != nil {
		return err
	}
	data := filepath.Join(scratch, "demodata")
	a.plugins = filepath.Join(scratch, "plugins")
	a.cniConf = filepath.Join(scratch, "demo.conflist")
	conf, err := cniinstall.Agent{Network: "demo", CNIVersion: "1.0.0", Plugin: "demo-cni"}.Render(context.Background(), "")
	if err != nil {
		return err
	}
	plugin := filepath.Join(data, "demo-cni")
	if err := errors.Join(
		os.Mkdir(a.plugins, 0o755),
		os.Chmod(plugin, 0o755),
		os.Link(plugin, filepath.Join(a.plugins, "loopback")),
		os.Rename(plugin, filepath.Join(a.plugins, "demo-cni")),
		os.WriteFile(a.cniConf, conf, 0o600),
	); err != nil {
		return err
	}
	a.hostProc = node.Proc()
	a.sources = []string{"file:" + filepath.Join(data, "configmap.yaml"), "env:DEMO_"}
	a.dest = filepath.Join(scratch, "config")
	defaults := (&app{}).planDefaults()
	a.cgroupRoot, a.bpfRoot = defaults.cgroupRoot, defaults.bpfRoot
	a.sysctlConfDir, a.sysctlConfFile = defaults.sysctlConfDir, defaults.sysctlConfFile
	a.cniBinDir, a.cniConfDir, a.cniConfName = defaults.cniBinDir, defaults.cniConfDir, defaults.cniConfName
	a.stateDir, a.owner, a.lockTimeout = defaults.stateDir, "demo", defaults.lockTimeout
	return nil
}

// distributionDefaults sets what most distributions ship.
func distributionDefaults(ctx context.Context, node *throwaway.Node) error {
	return node.Do(ctx, func(context.Context) error { return os.WriteFile(filterSetting, []byte("2"), 0) })
}

// planDefaults are the values that apply's flags have if none is given.
func (a *app) planDefaults() options {
	a.planFlags(&cobra.Command{})
	return a.options
}

func (a *app) say(text string) { fmt.Fprintf(a.stdout, "\n%s\n\n", text) }

func (a *app) scenes(scenes ...func() error) error {
	for _, scene := range scenes {
		if err := scene(); err != nil {
			return err
		}
	}
	a.say("Done.")
	return nil
}

func (a *app) scene(title string, ctx context.Context, run runner) error {
	a.say("--- " + title)
	return a.runPlan(ctx, run)
}

// expect makes the demo fail, instead of showing something that is not so.
func (a *app) expect(status bootstrap.Status, run runner) runner {
	return func(p *bootstrap.Plan, ctx context.Context) (*bootstrap.Report, error) {
		report, err := run(p, ctx)
		if left := len(report.Results) - report.Count(status, bootstrap.Skipped); err == nil && left > 0 {
			err = fmt.Errorf("%d steps are not %s", left, status)
		}
		return report, err
	}
}

// breakThings does to the node what people and programs do to nodes.
func (a *app) breakThings(ctx context.Context, node *throwaway.Node) error {
	a.say("--- three things break")
	conf := filepath.Join(a.cniConfDir, a.cniConfName)
	damages := []struct {
		what string
		do   func() error
	}{
		{"umount " + a.bpfRoot, func() error { return unmount(a.bpfRoot) }},
		{"echo '{}' > " + conf, func() error { return os.WriteFile(conf, []byte("{}\n"), 0o600) }},
		{"echo 1 > " + filterSetting, func() error { return os.WriteFile(filterSetting, []byte("1"), 0) }},
	}
	return node.Do(ctx, func(context.Context) error {
		for _, d := range damages {
			fmt.Fprintln(a.stdout, "  "+d.what)
			if err := d.do(); err != nil {
				return fmt.Errorf("%s: %w", d.what, err)
			}
		}
		return nil
	})
}

func (a *app) demoUninstall(ctx context.Context) error {
	a.say("--- uninstall: take it all back")
	if err := a.openJournal(ctx); err != nil {
		return err
	}
	return a.show(ctx, func(ctx context.Context) (*bootstrap.Report, error) { return a.undo(ctx, nil, false) })
}

// nothingLeft compares the node with what it was. The two files that stay are
// locks that every program on the node shares.
func (a *app) nothingLeft(ctx context.Context, node *throwaway.Node, before snapshot.Snapshot) error {
	after, err := demoSnapshot(ctx, node)
	if err != nil {
		return err
	}
	for _, kept := range []string{"file /run/xtables.lock", "file /run/slipway.lock"} {
		delete(after, kept)
	}
	if diff := before.Diff(after); len(diff) > 0 {
		return fmt.Errorf("left on the node: %s", strings.Join(diff, "; "))
	}
	a.say(fmt.Sprintf("Nothing is left: %d files, mounts, links and sysctls of the node are as before.", len(before)))
	return nil
}

func demoSnapshot(ctx context.Context, node *throwaway.Node) (snapshot.Snapshot, error) {
	s := snapshot.Snapshot{}
	err := node.Do(ctx, func(context.Context) error {
		return errors.Join(s.Files("/etc", "/opt", "/run", "/var"), s.Mounts(), s.Links(), s.Values("net/ipv4", "net/ipv6"))
	})
	return s, err
}
