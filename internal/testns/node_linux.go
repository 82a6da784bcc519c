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

const (
	everyNamespace  = hostns.Mount | hostns.Cgroup | hostns.Net | hostns.UTS | hostns.IPC
	defaultHostname = "slipway-node"
	closeTimeout    = 10 * time.Second
)

// pid1 mounts the /proc of its pid namespace, which only a process inside can, prints
// ready, and waits for the end of its standard input, which comes with the end of the
// process that started it, however that ends.
const pid1 = "mount -n -t proc -o nosuid,nodev,noexec proc /proc && echo ready && read -r end"

type node struct {
	init   *exec.Cmd
	stdin  io.Closer
	cgroup *cgroup
	close1 func() error
}

func (n *node) start(ctx context.Context, options NodeOptions) (err error) {
	if os.Geteuid() != 0 {
		return fmt.Errorf("needs root: %w", unix.EPERM)
	}
	if n.cgroup, err = newCgroup(options.Controllers); err != nil {
		return err
	}
	n.close1 = sync.OnceValue(n.end)
	if err = n.startInit(ctx); err == nil && options.Controllers && len(n.cgroup.first) == 0 {
		err = n.cgroup.delegate(n.init.Process.Pid)
	}
	if err == nil {
		setup := setup{hostname: cmp.Or(options.Hostname, defaultHostname), first: n.cgroup.first, root: options.Root}
		if err = unix.Stat("/proc", &setup.machineProc); err == nil {
			err = n.enter(ctx, setup.run)
		}
	}
	if err != nil {
		return errors.Join(err, n.close())
	}
	return nil
}

// startInit starts pid 1 and returns when it has mounted its /proc. Its cgroup
// namespace is unshared, not cloned: so its root is the cgroup it starts in.
func (n *node) startInit(ctx context.Context) error {
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
	stop := context.AfterFunc(ctx, func() { _ = n.kill() })
	defer stop()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		_ = n.close() // completes stderr; its error adds nothing
		return errors.Join(fmt.Errorf("pid 1: mount its /proc: %s: %w", strings.TrimSpace(stderr.String()), err), ctx.Err())
	}
	return nil
}

func (n *node) initDir() string { return filepath.Join("/proc", strconv.Itoa(n.init.Process.Pid)) }

func (n *node) proc() string { return filepath.Join(n.initDir(), "root/proc") }

func (n *node) startCommand(cmd *exec.Cmd) error {
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
		return cmd.Start()
	})
}

func (n *node) kill() error {
	if err := n.init.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill pid 1 of the node: %w", err)
	}
	return nil
}

func (n *node) close() error { return n.close1() }

func (n *node) end() error {
	var errs []error
	if n.init != nil {
		errs = append(errs, n.kill())
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
