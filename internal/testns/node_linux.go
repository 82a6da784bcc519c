// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
)

var everyNamespace = []string{"mnt", "cgroup", "net", "uts", "ipc"}

const (
	defaultHostname = "slipway-node"
	closeTimeout    = time.Minute // a file system with a million files takes long to go, beside other work
)

// pid1 mounts the /proc of its pid namespace, which only a process inside can, prints
// ready, and waits for the end of its standard input, which comes with the end of the
// process that started it, however that ends.
const pid1 = "mount -n -t proc -o nosuid,nodev,noexec proc /proc && echo ready && read -r end"

// Node is a running throw-away node, as the package comment describes. Several goroutines
// may use it.
type Node struct {
	init   *exec.Cmd
	stdin  io.Closer
	cgroup *cgroup
	close  func() error
}

// StartNode makes a node. The caller closes it; if the caller's process dies, pid 1 of
// the node notices and ends the node; only its empty cgroup stays. Cancelling ctx ends
// StartNode, not the node.
func StartNode(ctx context.Context, options NodeOptions) (*Node, error) {
	n := &Node{}
	err := n.start(ctx, options)
	if err != nil && n.close != nil {
		err = errors.Join(err, n.close())
	}
	if err != nil {
		return nil, fmt.Errorf("start throw-away node: %w", err)
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, options NodeOptions) (err error) {
	if os.Geteuid() != 0 {
		return fmt.Errorf("needs root: %w", unix.EPERM)
	}
	if n.cgroup, err = newCgroup(options.Controllers); err != nil {
		return err
	}
	n.close = sync.OnceValue(n.end)
	if err := n.startInit(ctx); err != nil {
		return err
	}
	if options.Controllers && len(n.cgroup.first) == 0 {
		if err := n.cgroup.delegate(n.init.Process.Pid); err != nil {
			return err
		}
	}
	setup := setup{hostname: cmp.Or(options.Hostname, defaultHostname), first: n.cgroup.first, root: options.Root}
	if err := unix.Stat("/proc", &setup.machineProc); err != nil {
		return err
	}
	return n.enter(ctx, setup.run)
}

// startInit starts pid 1 and returns when it has mounted its /proc. Its cgroup
// namespace is unshared, not cloned: so its root is the cgroup it starts in.
func (n *Node) startInit(ctx context.Context) error {
	var stderr bytes.Buffer
	cmd := exec.Command("sh", "-c", pid1)
	cmd.Dir = "/"
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Unshareflags: unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP, // the former makes every mount private
		UseCgroupFD:  true,
		CgroupFD:     int(n.cgroup.dir.Fd()),
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("pid 1: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("pid 1: %w", err)
	}
	if err := n.cgroup.onJoinedThread(cmd.Start); err != nil {
		return fmt.Errorf("pid 1 (needs CAP_SYS_ADMIN): %w", err)
	}
	n.init, n.stdin = cmd, stdin
	stop := context.AfterFunc(ctx, func() { _ = n.Kill() })
	defer stop()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		_ = n.close() // completes stderr; its error adds nothing
		return errors.Join(fmt.Errorf("pid 1: mount its /proc: %s: %w", strings.TrimSpace(stderr.String()), err), ctx.Err())
	}
	return nil
}

func (n *Node) initDir() string { return filepath.Join("/proc", strconv.Itoa(n.init.Process.Pid)) }

// Proc returns a directory that shows the node's processes, as /hostproc does
// in a container: Proc()+"/1" is its pid 1. It is a path of the machine's and
// exists until Close. A process of the machine that enters the node through it finds no
// /proc/self there, since the node's pid namespace does not show it; one that was started
// on the node does, also from a container in it.
func (n *Node) Proc() string { return filepath.Join(n.initDir(), "root/proc") }

// StartCommand starts cmd in all namespaces and in the cgroup of the node, with / as its
// working directory unless cmd.Dir names another. Killing cmd.Process kills the program
// itself. The caller waits for it before Close.
func (n *Node) StartCommand(cmd *exec.Cmd) error { return n.Run(cmd, cmd.Start) }

// Run is StartCommand for another method of cmd that starts it, such as Output.
func (n *Node) Run(cmd *exec.Cmd, start func() error) error {
	attr := syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(n.cgroup.processes().Fd())
	cmd.SysProcAttr = &attr
	return n.enter(context.Background(), func(context.Context) error {
		if err := n.cgroup.join(); err != nil {
			return err
		}
		// Holds for children only. This thread can no longer create threads; the runtime
		// never creates one from a locked thread.
		pid, err := os.Open("/proc/1/ns/pid")
		if err != nil {
			return fmt.Errorf("pid namespace of the node: %w", err)
		}
		defer pid.Close()
		if err := unix.Setns(int(pid.Fd()), unix.CLONE_NEWPID); err != nil {
			return fmt.Errorf("enter the node's pid namespace (needs CAP_SYS_ADMIN): %w", err)
		}
		return start()
	})
}

// Kill kills every process of the node, so that a Wait for them returns.
func (n *Node) Kill() error {
	if err := n.init.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill pid 1 of the node: %w", err)
	}
	return nil
}

// Close kills every process of the node, waits for its pid 1, which ends after
// all others, and removes its cgroup. A program that was started on the node
// and not waited for keeps pid 1 from ending; Close then returns an error after
// a minute. It may be called again.
func (n *Node) Close() error { return n.close() }

func (n *Node) end() error {
	var errs []error
	if n.init != nil {
		errs = append(errs, n.Kill())
		_ = n.stdin.Close()
		ended := make(chan struct{})
		go func() {
			_ = n.init.Wait() // it was killed, as its error reports
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(closeTimeout):
			errs = append(errs, errors.New("pid 1 of the node does not end: a program started on it was not waited for"))
		}
	}
	return errors.Join(append(errs, n.cgroup.remove())...)
}

// Do calls f in the mount, cgroup, net, uts and ipc namespaces of the node, as
// hostns.Do does: on a thread of its own, which f must not leave by starting
// goroutines. Mounts that f makes or removes are the node's, but f sees them through a
// copy of the namespace, whose other mounts are peers of the node's: remounting with other
// flags does not reach the node. In the copy, /proc is the caller's, which the node's own
// does not show, with the node's pid 1 as /proc/1.
func (n *Node) Do(ctx context.Context, f func(context.Context) error) error {
	return n.enter(ctx, func(ctx context.Context) error {
		if err := n.ownView(); err != nil {
			return fmt.Errorf("show the caller's /proc on the node: %w", err)
		}
		return f(ctx)
	})
}

// enter runs f in exactly the node's namespaces.
func (n *Node) enter(ctx context.Context, f func(context.Context) error) error {
	return hostns.Do(ctx, n.initDir(), everyNamespace, f)
}

func (n *Node) ownView() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare the mount namespace: %w", err)
	}
	// Nothing below /proc may reach a peer.
	if err := mount("", "/proc", "", unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	// It shows the thread's pid namespace, which is the caller's.
	if err := mount("proc", "/proc", "proc", hardened, ""); err != nil {
		return err
	}
	if err := mount(n.initDir(), "/proc/1", "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return protectMachine()
}
