// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/input"
)

// names are those of the sockets at which runtimes serve the CRI, also where their
// directory is another: k3s, k0s and MicroK8s have containerd's in one of theirs.
var names = []string{"containerd.sock", "crio.sock", "cri-dockerd.sock", "isulad.sock"}

// dockers is the end of the path of Docker's private containerd, which dockerd
// starts without the CRI (moby, libcontainerd/supervisor).
const dockers = "/docker/containerd/containerd.sock"

// maxSockets bounds how many are looked at.
const maxSockets = 100

func find(ctx context.Context, proc string) (Endpoint, error) {
	h, err := openHost(proc)
	if err != nil {
		return Endpoint{}, err
	}
	defer h.Close()
	k, kubeletErr := findKubelet(ctx, proc, h)
	if k.endpoint != "" {
		return k.runtime(h)
	}
	found, err := h.listening(ctx, proc)
	switch {
	case err != nil:
		return Endpoint{}, err
	case len(found) == 0:
		return Endpoint{}, ErrNoRuntime
	case len(found) == 1:
		return Endpoint{Path: found[0]}, nil
	case k.running && kubeletErr == nil && slices.Contains(found, defaultEndpoint):
		return Endpoint{Path: defaultEndpoint}, nil
	}
	if found = withCRI(ctx, proc, found); len(found) == 1 {
		return Endpoint{Path: found[0]}, nil
	}
	several := fmt.Errorf("%w, and no kubelet says which one it uses: %q", ErrSeveral, found)
	if kubeletErr != nil {
		several = fmt.Errorf("%w (%w)", several, kubeletErr)
	}
	return Endpoint{}, several
}

// patience is how long a socket has to answer when there are several.
const patience = 3 * time.Second

// withCRI leaves out the sockets whose runtime says that it has no CRI: on Talos and
// Bottlerocket, a second containerd runs what is the system's own.
func withCRI(ctx context.Context, proc string, paths []string) (with []string) {
	for _, path := range paths {
		limited, cancel := context.WithTimeout(ctx, patience)
		_, err := Endpoint{HostProc: proc, Path: path}.ask(limited, rpc{"Status", nil, maxMessage})
		cancel()
		if !errors.Is(err, errors.ErrUnsupported) {
			with = append(with, path)
		}
	}
	if len(with) == 0 {
		return paths // each may still be starting
	}
	return with
}

// listening lists the sockets on the host that are named as a runtime's, and at
// which somebody listens, each once.
func (h host) listening(ctx context.Context, proc string) (paths []string, err error) {
	table, err := os.Open(filepath.Join(proc, "1", "net", "unix"))
	if err != nil {
		return nil, err
	}
	defer table.Close()
	named, err := listed(input.WithContext(ctx, table))
	if err != nil {
		return nil, err
	}
	var seen []os.FileInfo
	for _, path := range named {
		f, err := h.openSocket(path)
		if err != nil {
			continue // another container's, or removed
		}
		info, err := f.Stat()
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		if !h.ownsAlone(path) {
			continue // a pod's: in an emptyDir, for example
		}
		if !slices.ContainsFunc(seen, func(s os.FileInfo) bool { return os.SameFile(s, info) }) {
			seen, paths = append(seen, info), append(paths, path)
		}
	}
	return paths, nil
}

// accepting is the flag of a socket that listens (__SO_ACCEPTCON in linux/net.h).
const accepting = 1 << 16

// listed reads a table in the form of /proc/net/unix (proc_pid_net(5)):
//
//	Num RefCount Protocol Flags Type St Inode Path
//
// Who makes a socket chooses its path, also one with ends of lines in it: what is
// listed still has to be a socket on the host that nobody but root can have made.
func listed(table io.Reader) (paths []string, err error) {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		f := strings.SplitN(strings.TrimLeft(lines.Text(), " "), " ", 7)
		if len(f) < 7 {
			continue
		}
		_, path, found := strings.Cut(strings.TrimLeft(f[6], " "), " ")
		flags, err := strconv.ParseUint(f[3], 16, 64)
		if !found || err != nil || flags&accepting == 0 || !isRuntime(path) || slices.Contains(paths, path) {
			continue
		}
		if len(paths) == maxSockets {
			return nil, fmt.Errorf("more than %d sockets are named as a runtime's", maxSockets)
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths, lines.Err()
}

func isRuntime(path string) bool {
	return filepath.IsAbs(path) && slices.Contains(names, filepath.Base(path)) && !strings.HasSuffix(path, dockers)
}
