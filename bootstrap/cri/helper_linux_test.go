// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
)

// host is a folder that looks as the /proc of a host does, as far as that is read.
// Its root is a folder of the test's.
type host struct {
	t          *testing.T
	proc, root string
}

func newHost(t *testing.T) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "cri") // the path of a socket has room for 107 bytes
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	h := &host{t, filepath.Join(dir, "proc"), filepath.Join(dir, "root")}
	h.write(filepath.Join(h.proc, "1/comm"), "init\n")
	h.write(filepath.Join(h.proc, "1/ns/mnt"), "")
	h.write(filepath.Join(h.proc, "1/net/unix"), "Num       RefCount Protocol Flags    Type St Inode Path\n"+
		"0000000000000000: 00000002 00000000 00000000 0002 01 16384\n"+
		"0000000000000000: 00000002 00000000 00010000 0001 01 22222 @/run/containerd/containerd.sock\n"+
		"0000000000000000: 00000003 00000000 00000000 0001 03 25713 /run/connected/containerd.sock\n")
	require.NoError(t, os.Mkdir(h.root, 0o755))
	require.NoError(t, os.Symlink(h.root, filepath.Join(h.proc, "1/root")))
	return h
}

func (h *host) write(path, content string) {
	h.t.Helper()
	require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(h.t, os.WriteFile(path, []byte(content), 0o644))
}

// list adds a line for a socket that listens.
func (h *host) list(path string) {
	h.t.Helper()
	f, err := os.OpenFile(filepath.Join(h.proc, "1/net/unix"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(h.t, err)
	_, err = f.WriteString("0000000000000000: 00000002 00000000 00010000 0001 01 16390 " + path + "\n")
	require.NoError(h.t, err)
	require.NoError(h.t, f.Close())
}

// listen makes a socket on the host.
func (h *host) listen(path string) net.Listener {
	h.t.Helper()
	place := filepath.Join(h.root, path)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(place), 0o755))
	l, err := net.Listen("unix", place)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = l.Close() }) // who serves has closed it already
	h.list(path)
	return l
}

// process adds one with a command line.
func (h *host) process(pid, name string, args ...string) {
	h.t.Helper()
	h.write(filepath.Join(h.proc, pid, "comm"), name+"\n")
	h.write(filepath.Join(h.proc, pid, "cmdline"), strings.Join(args, "\x00")+"\x00")
	require.NoError(h.t, os.Mkdir(filepath.Join(h.proc, pid, "ns"), 0o755))
	require.NoError(h.t, os.Link(filepath.Join(h.proc, "1/ns/mnt"), filepath.Join(h.proc, pid, "ns/mnt")))
}

const usual = "/run/containerd/containerd.sock"

// serve starts a runtime at the usual place.
func (h *host) serve(handler http.Handler) cri.Endpoint {
	h.t.Helper()
	critest.Serve(h.t, h.listen(usual), handler)
	return cri.Endpoint{HostProc: h.proc, Path: usual}
}
