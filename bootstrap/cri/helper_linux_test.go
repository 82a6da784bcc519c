// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
)

// host is a folder that imitates a host's /proc as far as the package reads it. Its root is one
// of the test's folders.
type host struct {
	t          *testing.T
	proc, root string
}

func newHost(t *testing.T) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "cri") // a socket's path has room for 107 bytes
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	h := &host{t, filepath.Join(dir, "proc"), filepath.Join(dir, "root")}
	require.NoError(t, os.Mkdir(h.root, 0o755))
	h.process("1", "init")
	h.process(runtimes, "containerd")
	h.write(filepath.Join(h.proc, "1/net/unix"), "Num       RefCount Protocol Flags    Type St Inode Path\n"+
		"0000000000000000: 00000002 00000000 00000000 0002 01 16384\n"+
		"0000000000000000: 00000002 00000000 00010000 0001 01 22222 @/run/containerd/containerd.sock\n"+
		"0000000000000000: 00000003 00000000 00000000 0001 03 25713 /run/connected/containerd.sock\n")
	return h
}

func (h *host) write(path, content string) {
	h.t.Helper()
	require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(h.t, os.WriteFile(path, []byte(content), 0o644))
}

// list adds a line for a listening socket, or for one whose name imitates one.
func (h *host) list(path string) {
	h.t.Helper()
	f, err := os.OpenFile(filepath.Join(h.proc, "1/net/unix"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(h.t, err)
	_, err = fmt.Fprintf(f, "0000000000000000: 00000002 00000000 00010000 0001 01 30000 %s\n", path)
	require.NoError(h.t, err)
	require.NoError(h.t, f.Close())
}

// listen makes a socket on the host; the runtimes' process listens at it.
func (h *host) listen(path string) net.Listener {
	h.t.Helper()
	return h.listenAs(runtimes, path)
}

func (h *host) listenAs(pid, path string) net.Listener {
	h.t.Helper()
	place := filepath.Join(h.root, path)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(place), 0o755))
	l, err := net.Listen("unix", place)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = l.Close() }) // the server may have closed it already
	h.list(path)
	h.holds(pid, l)
	return l
}

// holds makes a process hold a socket.
func (h *host) holds(pid string, l net.Listener) {
	h.t.Helper()
	raw, err := l.(*net.UnixListener).SyscallConn()
	require.NoError(h.t, err)
	var st unix.Stat_t
	require.NoError(h.t, raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &st) }))
	require.NoError(h.t, err)
	require.NoError(h.t, os.Symlink(fmt.Sprintf("socket:[%d]", st.Ino), filepath.Join(h.proc, pid, "fd", strconv.FormatUint(st.Ino, 10))))
}

// process adds a process of root's with a program name and a command line, in pid 1's
// namespaces.
func (h *host) process(pid, name string, args ...string) {
	h.t.Helper()
	at := filepath.Join(h.proc, pid)
	h.write(filepath.Join(at, "comm"), name+"\n")
	h.write(filepath.Join(at, "cmdline"), strings.Join(args, "\x00")+"\x00")
	h.write(filepath.Join(at, "status"), "Name:\t"+name+"\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nCapBnd:\t000001ffffffffff\n")
	h.write(filepath.Join(at, "cgroup"), "0::/system.slice/"+name+".service\n")
	h.write(filepath.Join(at, "maps"), "5581d4200000-5581d4400000 r--p 00000000 fd:01 12345\n")
	require.NoError(h.t, os.Mkdir(filepath.Join(at, "fd"), 0o755))
	for _, ns := range []string{"ns/user", "ns/pid", "ns/mnt"} {
		if pid == "1" {
			h.write(filepath.Join(at, ns), "")
			continue
		}
		require.NoError(h.t, os.MkdirAll(filepath.Dir(filepath.Join(at, ns)), 0o755))
		require.NoError(h.t, os.Link(filepath.Join(h.proc, "1", ns), filepath.Join(at, ns)))
	}
	require.NoError(h.t, os.Symlink("/proc/self/ns/net", filepath.Join(at, "ns/net")))
	require.NoError(h.t, os.Symlink(h.root, filepath.Join(at, "root")))
	h.write(filepath.Join(h.root, "usr/bin", name), "")
	require.NoError(h.t, os.Symlink(filepath.Join(h.root, "usr/bin", name), filepath.Join(at, "exe")))
}

// edit replaces a part of a file.
func (h *host) edit(path, old, new string) {
	h.t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(h.t, err)
	require.Contains(h.t, string(text), old)
	h.write(path, strings.Replace(string(text), old, new, 1))
}

// replace replaces a file with a copy, which has another inode.
func (h *host) replace(path string) {
	h.t.Helper()
	require.NoError(h.t, os.Remove(path))
	h.write(path, "")
}

const (
	usual    = "/run/containerd/containerd.sock"
	runtimes = "500" // the process that listens
)

// serve starts a runtime at the usual place.
func (h *host) serve(handler http.Handler) cri.Endpoint {
	h.t.Helper()
	critest.Serve(h.t, h.listen(usual), handler)
	return cri.Endpoint{HostProc: h.proc, Path: usual}
}
