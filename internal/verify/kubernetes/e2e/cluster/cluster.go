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
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realcri"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// Cluster is a running Kubernetes. Its first node has the control plane, and is there from
// start to end.
type Cluster struct {
	*Node
	Nodes  []*Node  // that run, from the first one on
	images [][]byte // archives of those that every node has
	ca     []byte
	admin  *realkube.Client
}

// Start makes a node, starts its services, and returns when pods can be created.
// containerd is one of [realcri.Versions], which is built from its module; empty:
// Debian's. log gets a line when something has to be built or downloaded. On a machine
// that cannot have a node, the error matches [errors.ErrUnsupported].
func Start(ctx context.Context, log io.Writer, containerd string) (*Cluster, error) {
	programs, err := findPrograms(ctx, log, cmp.Or(containerd, realcri.Debian))
	if err != nil {
		return nil, err
	}
	c := &Cluster{Node: &Node{Name: NodeName, programs: programs}}
	if err := c.boot(ctx, c.Node, nil); err != nil {
		return nil, fmt.Errorf("start the cluster: %w", err)
	}
	return c, nil
}

// Boot starts another node, of this name, and returns when the API server knows that it has
// booted. The disk, which stays the caller's, is one that [Cluster.CutPower] has returned, of
// this node or of another; nil: an empty one, but for the images that all nodes have.
func (c *Cluster) Boot(ctx context.Context, name string, disk *os.File) (*Node, error) {
	n := &Node{Name: name, programs: c.programs}
	return n, c.boot(ctx, n, disk)
}

func (c *Cluster) boot(ctx context.Context, n *Node, disk *os.File) error {
	c.Nodes = append(c.Nodes, n)
	err := n.powerOn(ctx, disk)
	if err == nil {
		err = c.connect(ctx, n)
	}
	if err == nil {
		err = n.serveContainerd(ctx)
	}
	switch {
	case err != nil:
	case n == c.Node:
		err = c.startControlPlane(ctx)
	case disk == nil:
		err = n.load(ctx, c.images...)
	}
	if err == nil {
		err = c.serveKubelet(ctx, n)
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("boot %s: %w", n.Name, err), c.Remove(n))
	}
	return err
}

// CutPower ends a node as a power cut does, and returns its disk, which is in memory until it
// is closed.
func (c *Cluster) CutPower(n *Node) (disk *os.File, err error) {
	if disk, err = os.Open(n.Root()); err != nil {
		return nil, err
	}
	return disk, c.Remove(n)
}

// Remove ends a node and all that was on it.
func (c *Cluster) Remove(n *Node) error {
	c.Nodes = slices.DeleteFunc(c.Nodes, func(other *Node) bool { return other == n })
	if n.node == nil {
		return nil // it never was on
	}
	err := n.node.Kill()
	for _, s := range n.services {
		_ = s.Wait() // it was killed
	}
	return errors.Join(err, n.node.Close())
}

// Close removes all nodes.
func (c *Cluster) Close() (err error) {
	for _, n := range slices.Backward(slices.Clone(c.Nodes)) {
		err = errors.Join(err, c.Remove(n))
	}
	return err
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
