// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"encoding/binary"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/internal/critest"
)

// host is a directory that imitates a host's /proc as far as the package reads it. Its root is one
// of the test's directories.
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
	return h
}

func (h *host) write(path, content string) {
	h.t.Helper()
	require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(h.t, os.WriteFile(path, []byte(content), 0o644))
}

// listen makes a socket on the host.
func (h *host) listen(path string) net.Listener {
	h.t.Helper()
	place := filepath.Join(h.root, path)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(place), 0o755))
	l, err := net.Listen("unix", place)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = l.Close() }) // the server may have closed it already
	return l
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
	for _, ns := range []string{"ns/user", "ns/pid"} {
		if pid == "1" {
			h.write(filepath.Join(at, ns), "")
			continue
		}
		require.NoError(h.t, os.MkdirAll(filepath.Dir(filepath.Join(at, ns)), 0o755))
		require.NoError(h.t, os.Link(filepath.Join(h.proc, "1", ns), filepath.Join(at, ns)))
	}
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

const usual = "/run/containerd/containerd.sock"

// serve starts a runtime at the usual place.
func (h *host) serve(handler http.Handler) cri.Endpoint {
	h.t.Helper()
	critest.Serve(h.t, h.listen(usual), handler)
	return cri.Endpoint{HostProc: h.proc, Path: usual}
}

// requireFound fails unless Find finds the runtime at the path.
func requireFound(t *testing.T, proc, path string) {
	t.Helper()
	found, err := cri.Find(t.Context(), proc)
	require.NoError(t, err)
	require.Equal(t, cri.Endpoint{HostProc: proc, Path: path}, found)
}

// listenOn makes a socket on a node.
func listenOn(t *testing.T, node *bootstraptest.Node, path string) net.Listener {
	t.Helper()
	l, err := node.Listen(path)
	require.NoError(t, err)
	return l
}

// send sends a message of gRPC, and the status OK.
func send(w http.ResponseWriter, message []byte) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)) // a client that has gone needs none
	w.Header().Set("Grpc-Status", "0")
}

// refuse sends a gRPC error.
func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", strconv.Itoa(code))
	w.Header().Set("Grpc-Message", url.PathEscape(message))
}
