// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realcri"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
	"github.com/slipway-dev/slipway/internal/verify/process"
)

// NodeName is the node's name in Kubernetes.
const NodeName = "node-1"

// Folders of the node.
const (
	ownDir = "/run/e2e"
	binDir = ownDir + "/bin"
	logDir = "/var/log/e2e"

	credentials = "/etc/kubernetes"
)

// Cluster is a running Kubernetes of one node.
type Cluster struct {
	node     *testns.Node
	programs programs
	services []*process.Process
	admin    *realkube.Client
}

// Options configure a cluster. The zero value has Debian's containerd.
type Options struct {
	// Containerd is one of [realcri.Versions], which is built from its module; empty:
	// Debian's.
	Containerd string
}

// Start makes a node, starts its services, and returns when pods can be created.
// log gets a line when something has to be built or downloaded. On a machine that
// cannot have a node, the error matches [errors.ErrUnsupported].
func Start(ctx context.Context, log io.Writer, options Options) (_ *Cluster, err error) {
	c := &Cluster{}
	if c.programs, err = findPrograms(ctx, log, cmp.Or(options.Containerd, realcri.Debian)); err != nil {
		return nil, err
	}
	if c.node, err = testns.StartNode(ctx, testns.NodeOptions{Hostname: NodeName, Controllers: true}); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{c.prepare, c.startAll} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("start the cluster: %w", err), c.Close())
		}
	}
	return c, nil
}

// Close ends all processes and removes the node.
func (c *Cluster) Close() error {
	err := c.node.Kill()
	for _, s := range c.services {
		_ = s.Wait() // it was killed
	}
	return errors.Join(err, c.node.Close())
}

// Root is the node's root directory, as the machine sees it.
func (c *Cluster) Root() string { return filepath.Dir(c.node.Proc()) }

// Proc shows the node's processes, as /hostproc does in a pod.
func (c *Cluster) Proc() string { return c.node.Proc() }

// path is where the machine sees a file of the node's.
func (c *Cluster) path(name string) string { return filepath.Join(c.Root(), name) }

// WriteFile writes a file on the node, and makes its folder.
func (c *Cluster) WriteFile(name, content string) error {
	if err := os.MkdirAll(filepath.Dir(c.path(name)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(c.path(name), []byte(content), 0o644)
}

func (c *Cluster) env() []string {
	return []string{
		"PATH=" + binDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LD_LIBRARY_PATH=" + c.programs.libraries(), "HOME=" + ownDir, "KUBECONFIG=" + kubeconfig(realkube.Admin),
	}
}

// start starts a program on the node. A name without a slash is looked for where
// the node's programs are.
func (c *Cluster) start(cmd *exec.Cmd) error {
	if !strings.Contains(cmd.Args[0], "/") {
		cmd.Path, cmd.Err = "/usr/bin/env", nil
		cmd.Args = append([]string{"env"}, cmd.Args...)
	}
	cmd.Env = append(c.env(), cmd.Env...)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	return c.node.StartCommand(cmd)
}

// Output runs a program on the node and returns what it printed, on both
// streams.
func (c *Cluster) Output(cmd *exec.Cmd) (string, error) {
	out, err := process.Output(cmd, c.start)
	if err != nil {
		err = fmt.Errorf("on the node: %w", err)
	}
	return out, err
}

// Run runs a program on the node and returns what it printed, on both streams.
func (c *Cluster) Run(ctx context.Context, name string, args ...string) (string, error) {
	return c.Output(exec.CommandContext(ctx, name, args...))
}

// Kubectl runs kubectl as the cluster's administrator.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.Run(ctx, "kubectl", args...)
}

// Apply makes or changes the objects of a manifest.
func (c *Cluster) Apply(ctx context.Context, manifest string) error {
	cmd := exec.CommandContext(ctx, "kubectl", "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	_, err := c.Output(cmd)
	return err
}

// Admin sends requests to the API server as its administrator.
func (c *Cluster) Admin() *realkube.Client { return c.admin }
