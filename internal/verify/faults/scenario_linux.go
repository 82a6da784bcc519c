// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package faults

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Scenario is a command of nodeinit on a node in a known state, and the administrator's
// next steps.
type Scenario struct {
	Name string

	node   string                             // a script that makes the initial state, which stays
	start  func(context.Context, *node) error // brings the node to the command's start; nil if the node is in that state already
	run    []string                           // the command that meets faults
	undo   [][]string                         // brings the node back from wherever the command ended or was cut short
	onward [][]string                         // forward again, after an uninstall that was cut short
	look   string                             // a script that lists more of the node's state
	kills  bool                               // the command is killed at each call, and undone at once
}

// Scripts that make and list objects on a node.
var (
	//go:embed scripts/others.sh
	others string
	//go:embed scripts/foreign.sh
	foreignState string
	//go:embed scripts/agent.sh
	agentState string
	//go:embed scripts/look.sh
	lookAtState string
)

// Scenarios returns all scenarios; the first is an apply of everything, which is also run
// with troubles. work is where [newNode] put the inputs.
func Scenarios(work string) []Scenario {
	input := func(version, command string, more ...string) []string {
		dir := filepath.Join(work, version)
		return append([]string{command, "--timeout", "30s"}, append(more,
			"--source", "file:"+filepath.Join(dir, "config.yaml"), "--dest", "/run/agent-config")...)
	}
	full := func(version, command string) []string {
		dir := filepath.Join(work, version)
		return input(version, command, "--plugins", filepath.Join(dir, "plugins"), "--cni-conf", filepath.Join(dir, "test.conflist"), "--cni-exclusive")
	}
	uninstall := []string{"uninstall", "--timeout", "30s"}
	install := full("v1", "install-cni")
	first := func(ctx context.Context, n *node) error { return n.clean(ctx, full("v1", "apply")) }
	leaf := func(step string) Scenario {
		return Scenario{Name: "leaf-" + step, node: others, run: append(full("v1", "apply"), "--only", step), undo: [][]string{uninstall}, kills: true}
	}
	return []Scenario{
		{Name: "apply", node: others, run: full("v1", "apply"), undo: [][]string{uninstall}},
		{Name: "update", node: others, start: first, run: full("v2", "apply"), undo: [][]string{uninstall}},
		{Name: "uninstall", node: others, start: first, run: uninstall, onward: [][]string{full("v1", "apply"), uninstall}},
		{Name: "install-cni", node: others, run: install, undo: [][]string{uninstall}},
		{
			Name: "build-config", run: input("v2", "build-config"), undo: [][]string{{"sh", "rm -rf /run/agent-config"}},
			start: func(ctx context.Context, n *node) error { return n.clean(ctx, input("v1", "build-config")) },
		},
		{
			Name: "cleanup", node: others + foreignState, start: leaveState, look: lookAtState,
			run: []string{"cleanup", "--all-state", "-f", "--timeout", "30s"},
		},
		leaf("config"), leaf("host-paths"), leaf("cgroup"), leaf("sysctl"), leaf("bpffs"), leaf("cni"),
	}
}

func leaveState(ctx context.Context, n *node) error {
	if err := n.clean(ctx, []string{"sh", agentState}); err != nil {
		return err
	}
	return n.Do(ctx, func(context.Context) error {
		return errors.Join(
			pinMap("/sys/fs/bpf/other/x"), pinMap("/sys/fs/bpf/cilium/a/x"), pinMap("/sys/fs/bpf/tc/globals/cilium_x"),
			attach("eth0", netlink.HANDLE_MIN_EGRESS, "foreign"), attach("eth0", netlink.HANDLE_MIN_INGRESS, "cil_from_netdev"),
			attach("lxc00001", netlink.HANDLE_MIN_INGRESS, "cil_from_contai"),
		)
	})
}

func pinMap(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil // a foreign one stays
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, Name: "x", KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return fmt.Errorf("make a map: %w", err)
	}
	defer m.Close()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return m.Pin(path)
}

// attach attaches a program that lets everything pass to a link that has clsact.
func attach(dev string, parent uint32, name string) error {
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return fmt.Errorf("link %s: %w", dev, err)
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, Name: name, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return fmt.Errorf("load a program: %w", err)
	}
	defer prog.Close()
	return netlink.FilterReplace(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: link.Attrs().Index, Parent: parent, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 1},
		Fd:          prog.FD(), Name: name, DirectAction: true,
	})
}
