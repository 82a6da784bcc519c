// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// host is the root directory of pid 1, in which paths resolve as they do there: an
// absolute link on the way, as /var/run often is, leads to the host's /run, not to ours.
type host struct{ root *os.File }

func openHost(proc string) (host, error) {
	return openRoot(filepath.Join(proc, "1", "root"))
}

// openRoot opens the root directory of a process.
func openRoot(path string) (host, error) {
	root, err := os.OpenFile(path, unix.O_PATH|unix.O_DIRECTORY, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return host{}, fmt.Errorf("%w: is the host's /proc mounted there?", err)
	case err != nil:
		return host{}, unreadable(err)
	}
	return host{root}, nil
}

func (h host) Close() error { return h.root.Close() }

// open opens the path on the host as a reference only (O_PATH).
func (h host) open(path string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(int(h.root.Fd()), path, &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN): // something on the way was renamed
		default:
			return nil, &fs.PathError{Op: "open on the host", Path: fmt.Sprintf("%q", path), Err: err}
		}
	}
}

// openSocket opens a reference to a socket.
func (h host) openSocket(path string) (*os.File, error) {
	f, err := h.open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		err = fmt.Errorf("%q is not a socket", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// again returns a path at which this process can open, or connect to, the object that f
// refers to, in any mount namespace and however long its own path.
func again(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
