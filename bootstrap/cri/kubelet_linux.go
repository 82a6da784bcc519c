// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/input"
)

// defaultEndpoint is what a kubelet uses that is told nothing (KubeletConfiguration
// v1beta1, containerRuntimeEndpoint).
const defaultEndpoint = "/run/containerd/containerd.sock"

// How much is read of what belongs to a process: its command line, its name.
const (
	maxCommandLine = 1 << 20
	maxName        = 64
)

// kubelet is that of the host.
type kubelet struct {
	running  bool
	endpoint string // empty: it names none
}

// runtime returns the endpoint that it names.
func (k kubelet) runtime(h host) (Endpoint, error) {
	path, err := socket(k.endpoint)
	if err != nil {
		return Endpoint{}, fmt.Errorf("the kubelet's runtime endpoint %w", err)
	}
	f, err := h.openSocket(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Endpoint{}, fmt.Errorf("%w at the kubelet's runtime endpoint: %w", ErrNoRuntime, err)
	}
	if err != nil {
		return Endpoint{}, fmt.Errorf("the kubelet's runtime endpoint: %w", err)
	}
	return Endpoint{Path: path}, f.Close()
}

// findKubelet looks for the kubelet among the processes of the host, and reads
// which runtime it uses.
func findKubelet(ctx context.Context, proc string, h host) (k kubelet, err error) {
	dir, err := input.OpenDir(proc)
	if err != nil {
		return k, err
	}
	defer dir.Close()
	for name, err := range input.Names(dir) {
		switch {
		case err != nil:
			return k, err
		case ctx.Err() != nil:
			return k, context.Cause(ctx)
		case !isKubelet(ctx, proc, name):
			continue
		}
		k.running = true
		args, err := input.ReadFile(ctx, filepath.Join(proc, name, "cmdline"), maxCommandLine)
		if err == nil {
			k.endpoint, err = h.endpoint(ctx, strings.Split(string(args), "\x00"))
		}
		if err != nil {
			return k, fmt.Errorf("read which runtime the kubelet uses: %w", err)
		}
		if k.endpoint != "" {
			break
		}
	}
	return k, nil
}

// isKubelet reports whether a process is called kubelet, and is what pid 1 runs on
// the host itself: any container may have a process of that name.
func isKubelet(ctx context.Context, proc, pid string) bool {
	if strings.Trim(pid, "0123456789") != "" {
		return false
	}
	name, err := input.ReadFile(ctx, filepath.Join(proc, pid, "comm"), maxName)
	return err == nil && strings.TrimSpace(string(name)) == "kubelet" &&
		same(proc, pid, "", sameOwner) && same(proc, pid, "ns/mnt", os.SameFile)
}

func sameOwner(a, b fs.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, also := b.Sys().(*syscall.Stat_t)
	return ok && also && x.Uid == y.Uid
}

// same compares a file of a process with that of pid 1.
func same(proc, pid, file string, equal func(a, b fs.FileInfo) bool) bool {
	its, err := os.Stat(filepath.Join(proc, pid, file))
	if err != nil {
		return false
	}
	first, err := os.Stat(filepath.Join(proc, "1", file))
	return err == nil && equal(its, first)
}

// endpoint returns what the kubelet with these arguments uses: flags win over
// files, and each file of --config-dir, in the order of their names, over those
// before it (kubernetes.io, Set Kubelet Parameters Via A Configuration File).
func (h host) endpoint(ctx context.Context, args []string) (endpoint string, err error) {
	if endpoint = flag(args, "container-runtime-endpoint"); endpoint != "" {
		return endpoint, nil
	}
	var files []string
	if config := flag(args, "config"); config != "" {
		files = append(files, config)
	}
	if dir := flag(args, "config-dir"); dir != "" {
		more, err := h.dropIns(ctx, dir)
		if err != nil {
			return "", err
		}
		files = append(files, more...)
	}
	for _, file := range files {
		content, err := h.read(ctx, file)
		if err != nil {
			return "", err
		}
		if said := configured(content); said != "" {
			endpoint = said
		}
	}
	return endpoint, nil
}

// flag returns the last value that a flag has among args.
func flag(args []string, name string) (value string) {
	for i, arg := range args {
		switch after, found := strings.CutPrefix(arg, "--"+name+"="); {
		case found:
			value = after
		case arg == "--"+name && i+1 < len(args):
			value = args[i+1]
		}
	}
	return value
}

// dropIns lists the files of --config-dir.
func (h host) dropIns(ctx context.Context, dir string) ([]string, error) {
	f, err := h.open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files, err := input.ReadNames(ctx, again(f), func(name string) bool { return strings.HasSuffix(name, ".conf") })
	for i, name := range files {
		files[i] = filepath.Join(dir, name)
	}
	slices.Sort(files)
	return files, err
}

func (h host) read(ctx context.Context, path string) ([]byte, error) {
	f, err := h.open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := input.ReadFile(ctx, again(f), input.MaxFlags)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	return content, nil
}

// inYAML finds the key where people and kubeadm write it: at the start of a line.
var inYAML = regexp.MustCompile(`(?m)^["']?containerRuntimeEndpoint["']?:[ \t]*["']?([^"'\s#]*)`)

// configured returns the containerRuntimeEndpoint of a KubeletConfiguration.
func configured(content []byte) string {
	var config struct {
		ContainerRuntimeEndpoint string `json:"containerRuntimeEndpoint"`
	}
	if json.Unmarshal(content, &config) == nil {
		return config.ContainerRuntimeEndpoint
	}
	if match := inYAML.FindSubmatch(content); match != nil {
		return string(match[1])
	}
	return ""
}
