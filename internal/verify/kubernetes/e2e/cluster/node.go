// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
	"github.com/slipway-dev/slipway/internal/verify/process"
)

// NodeName is the first node's name in Kubernetes.
const NodeName = "node-1"

// Names are those that nodes may have: with their place, they have an address.
var Names = []string{NodeName, "node-2", "node-3", "node-4", "node-5"}

// Directories of a node.
const (
	ownDir  = "/run/e2e"
	binDir  = ownDir + "/bin"
	diskDir = ownDir + "/disk"
	logDir  = "/var/log/e2e"

	credentials = "/etc/kubernetes"
)

// Node is a node of a cluster that runs.
type Node struct {
	Name     string
	node     *testns.Node
	programs programs
	services []*process.Process
}

// Address is the node's own.
func (n *Node) Address() string { return fmt.Sprint("10.250.0.", 2+slices.Index(Names, n.Name)) }

// powerOn makes a throw-away node, with the disk's content if there is one, and makes of it
// one that Kubernetes can run on.
func (n *Node) powerOn(ctx context.Context, disk *os.File) (err error) {
	if n.node, err = testns.StartNode(ctx, testns.NodeOptions{Hostname: n.Name, Controllers: true}); err != nil {
		return err
	}
	if disk != nil {
		cmd := exec.CommandContext(ctx, "cp", "-a", "--parents", "."+diskDir, n.Root())
		cmd.Dir = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), disk.Fd())
		if _, err := process.Output(cmd, nil); err != nil {
			return err
		}
	}
	return n.prepare(ctx)
}

// Root is the node's root directory, as the machine sees it.
func (n *Node) Root() string { return filepath.Dir(n.node.Proc()) }

// Proc shows the node's processes, as /hostproc does in a pod.
func (n *Node) Proc() string { return n.node.Proc() }

// path is where the machine sees a file of the node's.
func (n *Node) path(name string) string { return filepath.Join(n.Root(), name) }

// WriteFile writes a file on the node, and makes its directory.
func (n *Node) WriteFile(name, content string) error {
	if err := os.MkdirAll(filepath.Dir(n.path(name)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(n.path(name), []byte(content), 0o644)
}

func (n *Node) env() []string {
	return []string{
		"PATH=" + binDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LD_LIBRARY_PATH=" + n.programs.libraries(), "HOME=" + ownDir, "KUBECONFIG=" + kubeconfig(realkube.Admin),
	}
}

// start starts a program on the node. A name without a slash is looked for where
// the node's programs are.
func (n *Node) start(cmd *exec.Cmd) error {
	if !strings.Contains(cmd.Args[0], "/") {
		cmd.Path, cmd.Err = "/usr/bin/env", nil
		cmd.Args = append([]string{"env"}, cmd.Args...)
	}
	cmd.Env = append(n.env(), cmd.Env...)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	return n.node.StartCommand(cmd)
}

// Output runs a program on the node and returns what it printed, on both
// streams.
func (n *Node) Output(cmd *exec.Cmd) (string, error) {
	out, err := process.Output(cmd, n.start)
	if err != nil {
		err = fmt.Errorf("on the node: %w", err)
	}
	return out, err
}

// Run runs a program on the node and returns what it printed, on both streams.
func (n *Node) Run(ctx context.Context, name string, args ...string) (string, error) {
	return n.Output(exec.CommandContext(ctx, name, args...))
}
