// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/process"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// places are where the distributions' runtimes listen.
var places = []string{
	defaultEndpoint,
	"/run/crio/crio.sock",
	"/run/cri-dockerd.sock",
	"/run/isulad.sock",
	"/run/k3s/containerd/containerd.sock",   // and RKE2's
	"/run/k3s/cri-dockerd/cri-dockerd.sock", // of k3s server --docker
	"/run/k0s/containerd.sock",
	"/var/snap/microk8s/common/run/containerd.sock",
}

func find(ctx context.Context, proc string) (path string, err error) {
	h, err := openHost(proc)
	if err != nil {
		return "", err
	}
	defer h.Close()
	p, err := openProcesses(ctx, proc)
	if err != nil {
		return "", err
	}
	k, doubt := p.findKubelet(ctx)
	if k.endpoint != "" {
		return k.socket(h)
	}
	found, err := h.listening(ctx)
	own := slices.DeleteFunc(slices.Clone(found), func(path string) bool { return !strings.HasPrefix(path, k.directory) })
	switch {
	case err != nil:
		return "", err
	case len(own) == 1:
		return own[0], nil
	case len(found) == 1:
		return found[0], nil
	}
	several := fmt.Errorf("%w, and no kubelet names the one it uses: %q", errSeveral, found)
	if doubt != nil {
		several = fmt.Errorf("%w (%w)", several, doubt)
	}
	return "", several
}

// isNone reports whether an error means that no runtime is at a place, or that it has ended
// or is about to start.
func isNone(err error) bool {
	none := []error{fs.ErrNotExist, unix.ENOTDIR, unix.ENOTSOCK, unix.ECONNREFUSED}
	return slices.ContainsFunc(none, func(target error) bool { return errors.Is(err, target) })
}

// listening lists the places at which root listens, each socket once: some nodes have links
// from one place to another. A place that others may change is passed by, but not one that
// only cannot be reached.
func (h host) listening(ctx context.Context) (paths []string, err error) {
	var seen []fs.FileInfo
	var unproven error
	for _, path := range places {
		conn, info, err := h.connect(ctx, path)
		if err == nil {
			err = conn.Close()
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case isNone(err):
		case err != nil:
			unproven = errors.Join(unproven, fmt.Errorf("%s: %w", path, err))
		case !slices.ContainsFunc(seen, func(s fs.FileInfo) bool { return os.SameFile(s, info) }):
			seen, paths = append(seen, info), append(paths, path)
		}
	}
	var errno syscall.Errno
	if len(paths) > 0 && !errors.As(unproven, &errno) { // which may be the node's, such as a busy one
		return paths, nil
	}
	if unproven == nil {
		unproven = errNoRuntime
	}
	return nil, unproven
}

// dial connects to the runtime, if its socket is believed.
func (e Endpoint) dial(ctx context.Context) (net.Conn, error) {
	h, err := openHost(e.proc())
	if err != nil {
		return nil, err
	}
	defer h.Close()
	conn, _, err := h.connect(ctx, strings.TrimPrefix(e.Path, scheme))
	return conn, err
}

// host is the root directory of pid 1.
type host struct{ *os.File }

func openHost(proc string) (host, error) {
	root, err := openRoot(process.Process{PID: 1, Proc: proc})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: is the host's /proc mounted there?", err)
	case errors.Is(err, fs.ErrPermission):
		err = fmt.Errorf("%w: %w", errUnproven, err)
	}
	return host{root}, err
}

// socket opens a reference to the socket at the path (O_PATH), if only root, or this
// process's own user, may change any part of the path. A connection through the reference
// reaches this very socket, whatever happens to the path.
func (h host) socket(path string) (*os.File, error) {
	f, err := durable.OpenVetted(h.File, path)
	switch {
	case isNone(err):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", unproven(), err)
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		err = &fs.PathError{Op: "connect", Path: path, Err: unix.ENOTSOCK}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// connect connects to the socket at the path, at which root must listen, or this process's
// own user. info describes the socket.
func (h host) connect(ctx context.Context, path string) (conn net.Conn, info fs.FileInfo, err error) {
	f, err := h.socket(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err == nil {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", again(f))
	}
	var errno syscall.Errno
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return nil, nil, fmt.Errorf("connect: %w", unix.ECONNREFUSED)
	case errors.Is(err, fs.ErrPermission) && errors.As(err, &errno):
		return nil, nil, remedy.Add(fmt.Errorf("%w: connect: %w", errUnproven, errno), "needs root, and under SELinux a type that may connect to the runtime, such as spc_t")
	case errors.As(err, &errno): // such as EAGAIN: many wait to be accepted
		return nil, nil, fmt.Errorf("%w: connect: %w", errUnproven, errno)
	case err != nil:
		return nil, nil, ended(ctx, err)
	}
	if err := peerIsRoot(conn.(*net.UnixConn)); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, info, nil
}

// peerIsRoot returns an error unless root called listen(2) for the socket at the other end.
func peerIsRoot(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var peerErr error
	err = raw.Control(func(fd uintptr) { peer, peerErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, peerErr); err == nil && peer.Uid != 0 && int(peer.Uid) != os.Geteuid() {
		err = fmt.Errorf("%w: uid %d listens", unproven(), peer.Uid)
	}
	return err
}

// unproven returns errUnproven with the remedy.
func unproven() error {
	return remedy.Add(errUnproven, "root must listen, and no other user may change the socket's path")
}

// again returns a path at which this process can open, or connect to, the object that f
// refers to, in any mount namespace and however long its own path.
func again(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
