// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package demo shows nodeinit at work on a throw-away node made of namespaces: this
// process is the pod, the node is its host. It needs root, and Linux.
package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
)

// The objects that the demo breaks, at nodeinit's default places.
const (
	netns   = "/run/netns"
	cniConf = "/etc/cni/net.d/05-cilium.conflist"

	// filterSetting drops pods' packets if it is left as distributions set it.
	filterSetting = "/proc/sys/net/ipv4/conf/all/rp_filter"
)

// The exit statuses of nodeinit that the demo meets.
const (
	done    = 0
	changes = 2 // check: there is something to change
)

//go:embed configmap.yaml
var configMap []byte

//go:embed plugin
var plugin []byte // of CNI

// demo is one run of the demo.
type demo struct {
	out      io.Writer
	nodeinit func(ctx context.Context, args ...string) (status int)
	node     *testns.Node
	flags    string // a file of values for nodeinit's flags
}

// Run describes its actions on out, and performs them with nodeinit, a function that returns
// the exit status. Its files are made in the empty directory scratch. Run returns an error
// if nodeinit does not end as expected, or leaves anything on the node.
func Run(ctx context.Context, out io.Writer, scratch string, nodeinit func(ctx context.Context, args ...string) (status int)) (err error) {
	node, err := testns.StartNode(ctx, testns.NodeOptions{Hostname: "demo-node"})
	if err != nil {
		return fmt.Errorf("make a throw-away node: %w", err)
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	d := &demo{out: out, nodeinit: nodeinit, node: node, flags: filepath.Join(scratch, "flags.yaml")}
	if err := d.prepare(ctx, scratch); err != nil {
		return err
	}
	d.say("A throw-away node: namespaces of its own, on this kernel. Nothing of this machine is touched.")
	before, err := d.snapshot(ctx)
	if err != nil {
		return err
	}
	if err := d.scenes(ctx); err != nil {
		return err
	}
	return d.nothingLeft(ctx, before)
}

func (d *demo) scenes(ctx context.Context) error {
	for _, scene := range []struct {
		title, command string
		status         int
	}{
		{"apply", "apply", done},
		{"apply again: nothing to do", "apply", done},
		{"three things break", "", done},
		{"check: what has broken", "check", changes},
		{"apply: repair that, and nothing else", "apply", done},
		{"check: all is well", "check", done},
		{"uninstall: take it all back", "uninstall", done},
	} {
		d.say("--- " + scene.title)
		if scene.command == "" {
			if err := d.breakThings(ctx); err != nil {
				return err
			}
			continue
		}
		if status := d.nodeinit(ctx, scene.command, "--config", d.flags); status != scene.status {
			return fmt.Errorf("%s: nodeinit %s ended with status %d, not %d", scene.title, scene.command, status, scene.status)
		}
	}
	return nil
}

// prepare makes the files of a pod's manifest and image, and the node's settings that
// most distributions ship.
func (d *demo) prepare(ctx context.Context, scratch string) error {
	conf := []byte(`{"cniVersion": "1.0.0", "name": "demo", "plugins": [{"type": "demo-cni"}]}`)
	plugins := filepath.Join(scratch, "plugins")
	flags := fmt.Sprintf("host-proc: %q\nsource: [%q, %q]\ndest: %q\nplugins: %q\ncni-conf: %q\nowner: demo\n",
		d.node.Proc(), "file:"+filepath.Join(scratch, "configmap.yaml"), "env:DEMO_",
		filepath.Join(scratch, "config"), plugins, filepath.Join(scratch, "demo.conflist"))
	return errors.Join(
		os.Mkdir(plugins, 0o755),
		os.WriteFile(filepath.Join(plugins, "loopback"), plugin, 0o755),
		os.WriteFile(filepath.Join(plugins, "demo-cni"), plugin, 0o755),
		os.WriteFile(filepath.Join(scratch, "configmap.yaml"), configMap, 0o600),
		os.WriteFile(filepath.Join(scratch, "demo.conflist"), conf, 0o600),
		os.WriteFile(d.flags, []byte(flags), 0o600),
		d.node.Do(ctx, func(context.Context) error { return os.WriteFile(filterSetting, []byte("2"), 0) }),
	)
}

func (d *demo) say(text string) { fmt.Fprintf(d.out, "\n%s\n\n", text) }

// breakThings damages the node as people and programs do.
func (d *demo) breakThings(ctx context.Context) error {
	damages := []struct {
		what string
		do   func() error
	}{
		{"rmdir " + netns, func() error { return os.Remove(netns) }},
		{"rm " + cniConf, func() error { return os.Remove(cniConf) }},
		{"echo 2 > " + filterSetting, func() error { return os.WriteFile(filterSetting, []byte("2"), 0) }},
	}
	return d.node.Do(ctx, func(context.Context) error {
		for _, damage := range damages {
			fmt.Fprintln(d.out, "  "+damage.what)
			if err := damage.do(); err != nil {
				return fmt.Errorf("%s: %w", damage.what, err)
			}
		}
		return nil
	})
}

// nothingLeft compares the node with its original state. The two files that stay are
// locks that every program on the node shares.
func (d *demo) nothingLeft(ctx context.Context, before snapshot.Snapshot) error {
	after, err := d.snapshot(ctx)
	if err != nil {
		return err
	}
	for _, kept := range []string{"file /run/xtables.lock", "file /run/slipway.lock"} {
		delete(after, kept)
	}
	if diff := before.Diff(after); len(diff) > 0 {
		return fmt.Errorf("left on the node: %s", strings.Join(diff, "; "))
	}
	d.say(fmt.Sprintf("Nothing is left: %d files, mounts, links and sysctls of the node are as before, and two lock files stay.", len(before)))
	d.say("Done.")
	return nil
}

func (d *demo) snapshot(ctx context.Context) (snapshot.Snapshot, error) {
	s := snapshot.Snapshot{}
	err := d.node.Do(ctx, func(context.Context) error { return s.Node() })
	return s, err
}
