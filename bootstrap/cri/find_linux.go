// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// names are those of the sockets at which runtimes serve the CRI, in any directory: k3s,
// k0s and MicroK8s have containerd's in one of their own.
var names = []string{"containerd.sock", "crio.sock", "cri-dockerd.sock", "isulad.sock"}

// dockers is the end of the path of Docker's private containerd, which dockerd
// starts without the CRI (moby, libcontainerd/supervisor).
const dockers = "/docker/containerd/containerd.sock"

// maxSockets bounds the runtimes that are looked at, and maxUnproven the unproven sockets
// that an error names.
const (
	maxSockets  = 100
	maxUnproven = 10
)

func find(ctx context.Context, proc string) (Endpoint, error) {
	h, err := openHost(proc)
	if err != nil {
		return Endpoint{}, err
	}
	defer h.Close()
	p, err := openProcesses(ctx, proc)
	if err != nil {
		return Endpoint{}, err
	}
	k, kubeletErr := p.findKubelet(ctx)
	if k.endpoint != "" {
		return k.runtime(h)
	}
	found, err := p.listening(ctx, h)
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
	several := fmt.Errorf("%w, and no kubelet names the one it uses: %q", ErrSeveral, found)
	if kubeletErr != nil {
		several = fmt.Errorf("%w (%w)", several, kubeletErr)
	}
	return Endpoint{}, several
}

// patience bounds the wait for each socket's answer when there are several.
const patience = 3 * time.Second

// withCRI leaves out the sockets whose runtime reports that it has no CRI: on Talos and
// Bottlerocket, a second containerd runs the system's own containers.
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

// listening lists the sockets on the host with the name of a runtime's at which a process
// of the host's root listens, each once.
func (p *processes) listening(ctx context.Context, h host) (paths []string, err error) {
	held, denied, err := p.held(ctx)
	if err != nil {
		return nil, err
	}
	var seen []os.FileInfo
	var unproven []string
	for path, err := range p.names(ctx) {
		switch {
		case err != nil:
			return nil, err
		case !isRuntime(path):
			continue
		}
		f, err := h.vetted(path)
		if err != nil {
			continue // another container's, removed, or exchangeable by others
		}
		isRoots := p.rootListens(ctx, h, held, f)
		info, err := f.Stat()
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		switch {
		case isRoots && slices.ContainsFunc(seen, func(s os.FileInfo) bool { return os.SameFile(s, info) }):
		case !isRoots && (len(unproven) == maxUnproven || slices.Contains(unproven, path)):
		case h.answers(ctx, path) != nil:
		case !isRoots:
			unproven = append(unproven, path)
		default:
			if seen, paths = append(seen, info), append(paths, path); len(paths) > maxSockets {
				return nil, fmt.Errorf("more than %d sockets are named as a runtime's", maxSockets)
			}
		}
	}
	slices.Sort(paths)
	if len(paths) == 0 && len(unproven) > 0 {
		return nil, errors.Join(fmt.Errorf("%w at %q", errUnproven(), unproven), denied)
	}
	return paths, nil
}

func isRuntime(path string) bool {
	return filepath.IsAbs(path) && slices.Contains(names, filepath.Base(path)) && !strings.HasSuffix(path, dockers)
}
