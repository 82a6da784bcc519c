// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os/exec"
	"sync"
	"testing"

	"github.com/slipway-dev/slipway/internal/testns"
)

// Node is a throw-away node: a process tree with mount, net, cgroup, pid, uts
// and ipc namespaces, a root file system and a cgroup of its own. The machine's
// mounts, sysctls, links, /etc, /opt, /run and /var are out of its reach.
//
// Its /etc, /opt, /run and /var are as good as empty, /sys/fs/bpf is not
// mounted, its cgroup2 is at /sys/fs/cgroup, mounts are shared within it, lo is
// up. Of its /proc/sys, only net is writable: the rest is the machine's. The machine's
// other directories are there, /usr read-only, and /tmp as it is: the test
// sees, and removes, what the node writes below [testing.T.TempDir]. Programs still
// running when the test ends are killed. Several goroutines may use a Node.
type Node struct {
	node *testns.Node
	t    testing.TB

	mu      sync.Mutex
	started []*Cmd
}

// NewNode starts a node for the test t, at whose end it is gone. It needs Linux
// with a mounted cgroup2, and root with the capabilities SYS_ADMIN, SYS_CHROOT,
// NET_ADMIN and MKNOD. Where these are missing the test is skipped; it fails
// instead if the environment variable SLIPWAY_TEST_REQUIRE_ROOT is 1.
func NewNode(t testing.TB) *Node {
	t.Helper()
	n, err := testns.StartNode(t.Context(), testns.NodeOptions{})
	switch {
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission):
		testns.Skip(t, err.Error())
	case err != nil:
		t.Fatal(err)
	}
	node := &Node{node: n, t: t}
	t.Cleanup(node.end)
	return node
}

// end waits for all programs, without which the node would not end.
func (n *Node) end() {
	err := n.node.Kill()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.started {
		_ = c.wait() // which returns its error to the test as well
	}
	if err = errors.Join(err, n.node.Close()); err != nil {
		n.t.Error(err)
	}
}

// Proc returns a directory of the machine's that shows the node's processes, as
// /hostproc does in a container: Proc()+"/1" is its pid 1. Programs of the machine that
// enter the node through it find no /proc/self there, so it is no hostns.Host.Proc for the
// test's own process; programs that [Node.Command] starts find it, also when they make a
// container in turn.
func (n *Node) Proc() string { return n.node.Proc() }

// Do calls f in the node's mount, cgroup, net, uts and ipc namespaces, on a
// thread that is thrown away, and waits for it. f must not start goroutines:
// they would run on the machine. Mounts that f makes or removes are the node's; its /proc
// is the machine's, with the node's pid 1 as /proc/1 and only the sysctls below net
// writable. A panic in f, and its end by t.FailNow, come back as errors.
func (n *Node) Do(ctx context.Context, f func(context.Context) error) error {
	return n.node.Do(ctx, f)
}

// Listen makes a unix socket at path on the node, and its directory if that is missing. The
// test accepts. It ends at the end of the test.
func (n *Node) Listen(path string) (net.Listener, error) {
	l, err := n.node.Listen(path)
	if err == nil {
		n.t.Cleanup(func() { _ = l.Close() }) // the test may have closed it
	}
	return l, err
}

// Cmd is a program that runs on a [Node]. It has the fields and methods of
// [exec.Cmd]; the cgroup in SysProcAttr is the node's, whatever is set there.
type Cmd struct {
	*command
	node *Node
	wait func() error
}

type command = exec.Cmd // its name hides the embedded method, which would start the program on the machine

// Command returns a program to be run in all the node's namespaces and in its
// cgroup, with / as its working directory unless Dir is set. The name is looked
// up in the test's PATH. Process.Kill kills the program itself.
func (n *Node) Command(name string, args ...string) *Cmd {
	cmd := exec.CommandContext(n.t.Context(), name, args...)
	return &Cmd{command: cmd, node: n, wait: sync.OnceValue(cmd.Wait)}
}

// Start starts the program and does not wait for it.
func (c *Cmd) Start() error {
	if err := c.node.node.StartCommand(c.command); err != nil {
		return err
	}
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	c.node.started = append(c.node.started, c)
	return nil
}

// Wait waits for a started program as [exec.Cmd.Wait] does. Called again, it
// returns the same.
func (c *Cmd) Wait() error {
	if c.Process == nil {
		return errors.New("wait: not started")
	}
	return c.wait()
}

// Run starts the program and waits for it.
func (c *Cmd) Run() error {
	err := c.Start()
	if err == nil {
		err = c.wait()
	}
	return err
}

// Output is that of [exec.Cmd].
func (c *Cmd) Output() ([]byte, error) { return c.output((*exec.Cmd).Output) }

// CombinedOutput is that of [exec.Cmd].
func (c *Cmd) CombinedOutput() ([]byte, error) { return c.output((*exec.Cmd).CombinedOutput) }

func (c *Cmd) output(of func(*exec.Cmd) ([]byte, error)) (out []byte, err error) {
	err = c.node.node.Run(c.command, func() (err error) {
		out, err = of(c.command)
		return err
	})
	return out, err
}
