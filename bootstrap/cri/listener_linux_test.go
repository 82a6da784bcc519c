// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testns"
)

// listenAs makes a socket on a node, which the given program has open.
func listenAs(t *testing.T, node *bootstraptest.Node, path string, program ...string) *net.UnixListener {
	t.Helper()
	var l net.Listener
	require.NoError(t, node.Do(t.Context(), func(context.Context) (err error) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		l, err = net.Listen("unix", path)
		return err
	}))
	socket := l.(*net.UnixListener)
	socket.SetUnlinkOnClose(false) // its path is on the node
	t.Cleanup(func() { _ = socket.Close() })
	file, err := socket.File()
	require.NoError(t, err)
	defer file.Close()
	cmd := node.Command(program[0], program[1:]...)
	cmd.ExtraFiles = []*os.File{file}
	start(t, cmd)
	require.NoError(t, unix.SetNonblock(int(file.Fd()), true)) // inheriting it made it blocking
	return socket
}

// liar is a runtime that must not be asked.
func liar(t *testing.T) http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a stranger was asked") })
}

// inAPod runs a program on a node as a pod's container would.
func inAPod(path string) []string {
	const enter = `mkdir -p /sys/fs/cgroup/kubepods/pod12; echo $$ > /sys/fs/cgroup/kubepods/pod12/cgroup.procs; exec "$1"`
	return []string{"sh", "-ec", enter, "sh", path}
}

// refused checks that each call to the runtime at the path is refused.
func refused(t *testing.T, node *bootstraptest.Node, path string) {
	t.Helper()
	e := cri.Endpoint{HostProc: node.Proc(), Path: path}
	_, err := e.Status(t.Context())
	require.ErrorIs(t, err, cri.ErrUnproven)
	require.Equal(t, "cri.unproven", code.Of(err))
	_, err = e.SandboxIDs(t.Context())
	require.ErrorIs(t, err, cri.ErrUnproven)
	_, err = e.CNI(t.Context())
	require.ErrorIs(t, err, cri.ErrUnproven)
	require.ErrorContains(t, err, "(it must listen as root, on the host, outside all pods; from a container, verifying that in the host's /proc takes CAP_SYS_PTRACE)")
}

// A pod that is root in its container puts a runtime into one of the host's folders that it
// has.
func TestSEC11_APodsSocketIsNotTheRuntime(t *testing.T) {
	node := bootstraptest.NewNode(t)
	const planted = "/var/lib/app/containerd.sock"
	critest.Serve(t, listenAs(t, node, planted, inAPod(program(t, "app", 0o755))...), liar(t))
	_, err := cri.Find(t.Context(), node.Proc())
	require.ErrorIs(t, err, cri.ErrUnproven)
	require.ErrorContains(t, err, `at ["/var/lib/app/containerd.sock"]`)
	refused(t, node, planted)

	critest.Serve(t, listenOn(t, node, usual), critest.Runtime{Info: critest.Containerd("/etc/cni/net.d", "/opt/cni/bin")})
	found, err := cri.Find(t.Context(), node.Proc())
	require.NoError(t, err)
	require.Equal(t, usual, found.Path)
	_, err = found.CNI(t.Context())
	require.NoError(t, err)
	refused(t, node, planted)
}

// The creator of a socket chooses its name, which may contain a line break and then an
// imitation of another socket's line: one of root's, which seems to listen where a pod
// does. A user does that for a pod that is root in its container.
func TestSEC11_ANameIsNoLineOfTheList(t *testing.T) {
	node := bootstraptest.NewNode(t)
	const planted, roots = "/var/lib/app/containerd.sock", "/run/acme.socket"
	critest.Serve(t, listenAs(t, node, planted, inAPod(program(t, "app", 0o755))...), liar(t))
	critest.Serve(t, listenOn(t, node, roots), critest.Runtime{})
	table, err := os.ReadFile(filepath.Join(node.Proc(), "1/net/unix"))
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^.* ([0-9]+) ` + roots + `$`).FindSubmatch(table)
	require.NotNil(t, line, "%s", table)
	require.NoError(t, node.Do(t.Context(), func(context.Context) error {
		l, err := net.Listen("unix", fmt.Sprintf("@\n0: 2 0 10000 1 1 %s %s", line[1], planted))
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
		return err
	}))
	_, err = cri.Find(t.Context(), node.Proc())
	require.ErrorIs(t, err, cri.ErrUnproven)
	refused(t, node, planted)
}

// A user makes more sockets than are ever examined.
func TestSEC11_AUsersSocketsAreNotCounted(t *testing.T) {
	node := bootstraptest.NewNode(t)
	var his []net.Listener
	require.NoError(t, node.Do(t.Context(), func(context.Context) error {
		for i := range 101 {
			dir := fmt.Sprintf("/run/user/%d", i)
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chown(dir, nobody, nobody)); err != nil {
				return err
			}
			l, err := net.Listen("unix", dir+"/containerd.sock")
			if err != nil {
				return err
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			his = append(his, l)
		}
		return nil
	}))
	for _, l := range his {
		defer l.Close()
	}
	_, err := cri.Find(t.Context(), node.Proc())
	require.ErrorIs(t, err, cri.ErrNoRuntime)
	critest.Serve(t, listenOn(t, node, usual), critest.Runtime{})
	found, err := cri.Find(t.Context(), node.Proc())
	require.NoError(t, err)
	require.Equal(t, usual, found.Path)
}

// The kernel's list misses a socket if sockets before it are closed during the read.
func TestSEC11_ASocketThatOneListLacksIsFound(t *testing.T) {
	h := newHost(t)
	table := filepath.Join(h.proc, "1/net/unix")
	without, err := os.ReadFile(table)
	require.NoError(t, err)
	h.serve(critest.Runtime{})
	with, err := os.ReadFile(table)
	require.NoError(t, err)
	h.write(table, string(without))
	h.write(table+".next", string(with))
	exchanged := false
	_, err = cri.Find(asked{t.Context(), func() {
		if !exchanged && isOpen(t, table) { // an open list is not updated
			require.NoError(t, os.Rename(table+".next", table))
			exchanged = true
		}
	}}, h.proc)
	require.NoError(t, err)
	require.True(t, exchanged)
}

// asked is a context that calls a function at each check whether it is done.
type asked struct {
	context.Context
	call func()
}

func (a asked) Err() error {
	a.call()
	return a.Context.Err()
}

// isOpen reports whether this process has the file open.
func isOpen(t *testing.T, path string) bool {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return slices.ContainsFunc(fds, func(fd os.DirEntry) bool {
		target, err := os.Readlink("/proc/self/fd/" + fd.Name())
		return err == nil && target == path
	})
}

// The name of a runtime that has ended stays. A program that listens at the same name in
// another mount namespace is listed as if it were the host's.
func TestSEC11_AStaleNameTakenElsewhereIsNotTheRuntime(t *testing.T) {
	node := bootstraptest.NewNode(t)
	stale := listenOn(t, node, usual)
	require.NoError(t, stale.Close())
	his := node.Command("unshare", "--mount", "sh", "-ec", `mount -t tmpfs none /run; mkdir /run/containerd; exec "$@"`, "sh",
		program(t, "his", 0o755), usual)
	start(t, his, listens)
	_, err := cri.Find(t.Context(), node.Proc())
	require.ErrorIs(t, err, cri.ErrNoRuntime)
	_, err = cri.Endpoint{HostProc: node.Proc(), Path: usual}.SandboxIDs(t.Context())
	require.ErrorIs(t, err, unix.ECONNREFUSED)

	require.NoError(t, node.Do(t.Context(), func(context.Context) error { return os.Remove(usual) }))
	critest.Serve(t, listenOn(t, node, usual), critest.Runtime{Sandboxes: func() []string { return []string{"alive"} }})
	ids, err := cri.Endpoint{HostProc: node.Proc()}.SandboxIDs(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"alive"}, ids)
}

// A listener can hand its socket to one of root's processes, which keeps descriptors that
// it receives. The process that called listen(2) stays the same.
func TestSEC11_ASocketHandedToRootIsNotRoots(t *testing.T) {
	node := bootstraptest.NewNode(t)
	const path = "/run/app/containerd.sock"
	var socket *os.File
	require.NoError(t, node.Do(t.Context(), func(context.Context) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		socket = os.NewFile(uintptr(fd), path)
		return errors.Join(os.Mkdir(filepath.Dir(path), 0o755), unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	}))
	defer socket.Close()
	for _, attr := range []bool{true, false} {
		cmd := node.Command(program(t, "app", 0o755))
		cmd.ExtraFiles = []*os.File{socket}
		if attr {
			cmd.SysProcAttr = asNobody()
			start(t, cmd, listensAt3)
			continue
		}
		start(t, cmd)
	}
	_, err := cri.Find(t.Context(), node.Proc())
	require.ErrorIs(t, err, cri.ErrNoRuntime)
	refused(t, node, path)
}

// A runtime may be known by a path other than the one at which it listens, and its socket
// may be systemd's.
func TestARuntimeIsProvenByEachOfItsPaths(t *testing.T) {
	node := bootstraptest.NewNode(t)
	critest.Serve(t, listenOn(t, node, "/run/crio/crio.sock"), critest.Runtime{})
	require.NoError(t, node.Do(t.Context(), func(context.Context) error { return os.Symlink("/var/run/crio/crio.sock", "/run/link.sock") }))
	for _, path := range []string{"/run/crio/crio.sock", "/var/run/crio/crio.sock", "unix:///run/link.sock"} {
		_, err := cri.Endpoint{HostProc: node.Proc(), Path: path}.Status(t.Context())
		require.NoError(t, err, path)
	}
}

// Without unix_diag, here because of a seccomp filter, no socket is trusted.
func TestSEC11_AKernelThatDoesNotSayWhoListens(t *testing.T) {
	h := newHost(t)
	h.serve(critest.Runtime{})
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		err := testns.Refuse(unix.EPROTONOSUPPORT, testns.Call{Number: unix.SYS_SOCKET})
		if err == nil {
			_, err = cri.Find(t.Context(), h.proc)
		}
		done <- err
	}()
	err := <-done
	require.ErrorIs(t, err, cri.ErrUnproven)
	require.ErrorContains(t, err, "(needs the kernel's module unix_diag)")
}
