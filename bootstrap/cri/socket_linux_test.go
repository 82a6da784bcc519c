// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/critest"
	"github.com/slipway-dev/slipway/internal/testns"
)

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
	require.ErrorContains(t, err, "(root must listen, and no other user may change the socket's path)")
}

// A pod that is root in its container puts a runtime into one of the host's directories that it
// has, and a user has a hundred sockets with a runtime's name.
func TestSEC11_SocketsElsewhereAreNotLookedAt(t *testing.T) {
	node := bootstraptest.NewNode(t)
	for i := range 102 {
		path, uid := "/var/lib/app/containerd.sock", 0
		if i > 0 {
			path, uid = fmt.Sprintf("/run/user/%d/containerd.sock", i), nobody
		}
		l := listenOn(t, node, path)
		go func() {
			if conn, err := l.Accept(); err == nil {
				_ = conn.Close()
				t.Error("it was looked at")
			}
		}()
		require.NoError(t, node.Do(t.Context(), func(context.Context) error { return os.Chown(filepath.Dir(path), uid, uid) }))
	}
	_, err := cri.Find(t.Context(), node.Proc())
	require.ErrorIs(t, err, cri.ErrNoRuntime)
	critest.Serve(t, listenOn(t, node, usual), critest.Runtime{})
	requireFound(t, node.Proc(), usual)
}

// The name of a runtime that has ended stays, and a program may listen at the same name in
// another mount namespace.
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

// Root made the socket and has it open, but another user called listen(2) for it.
func TestSEC11_TheListenersUserIsRoot(t *testing.T) {
	node := bootstraptest.NewNode(t)
	const path = "/run/k0s/containerd.sock"
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
	require.ErrorIs(t, err, cri.ErrUnproven)
	require.ErrorContains(t, err, path+": nothing proves")
	require.ErrorContains(t, err, "uid 65534 listens")
	refused(t, node, path)
}

// A socket that may not be connected to, as under SELinux, or that many wait for, is not
// taken for missing.
func TestSEC11_ASocketThatCannotBeReachedIsAnError(t *testing.T) {
	h := newHost(t)
	h.listen(usual)
	for errno, want := range map[unix.Errno]string{
		unix.EACCES: "connect: permission denied (needs root, and under SELinux a type that may connect to the runtime, such as spc_t)",
		unix.EAGAIN: "connect: resource temporarily unavailable",
	} {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			err := testns.Refuse(errno, testns.Call{Number: unix.SYS_CONNECT})
			if err == nil {
				_, err = cri.Find(t.Context(), h.proc)
			}
			done <- err
		}()
		err := <-done
		require.ErrorIs(t, err, cri.ErrUnproven)
		require.ErrorContains(t, err, want)
	}
}

// A runtime that is too busy to accept is the node's none the less: the plugins would go
// where another one looks.
func TestSEC11_ABusyRuntimeIsNotPassedBy(t *testing.T) {
	h := newHost(t)
	h.listen("/run/crio/crio.sock")
	place := &unix.SockaddrUnix{Name: filepath.Join(h.root, usual)}
	require.NoError(t, os.MkdirAll(filepath.Dir(place.Name), 0o755))
	socket := func() int {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, unix.Close(fd)) })
		return fd
	}
	busy := socket()
	require.NoError(t, errors.Join(unix.Bind(busy, place), unix.Listen(busy, 0)))
	for err := error(nil); !errors.Is(err, unix.EAGAIN); err = unix.Connect(socket(), place) {
		require.NoError(t, err)
	}
	_, err := cri.Find(t.Context(), h.proc)
	require.ErrorIs(t, err, cri.ErrUnproven)
	require.ErrorContains(t, err, usual+": nothing proves that the host's container runtime listens: connect: resource temporarily unavailable")
}
