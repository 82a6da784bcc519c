// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/input"
)

// defaultEndpoint is used by a kubelet without configuration (KubeletConfiguration
// v1beta1, containerRuntimeEndpoint).
const defaultEndpoint = "/run/containerd/containerd.sock"

// kubelet is that of the host.
type kubelet struct {
	running  bool
	endpoint string // empty: it names none
}

// runtime returns the endpoint that the kubelet names.
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

// ownName matches the name of a kubelet's program, to which some distributions add a
// version; hyperkube is a kubelet if its first argument is kubelet.
var ownName = regexp.MustCompile(`^(kubelet([-_.]?v?[0-9][0-9.]*)?|hyperkube)$`)

// withOthers are programs that contain a kubelet among others. They do not take a
// kubelet's --config, and their default is not the kubelet's.
var withOthers = []string{"k3s", "rke2", "kubelite"}

// findKubelet looks for the kubelet among the processes of the host, and reads
// which runtime it uses.
func (p *processes) findKubelet(ctx context.Context) (k kubelet, err error) {
	var doubt error
	for pid, err := range p.all(ctx) {
		if err != nil {
			return k, err
		}
		one, err := p.kubelet(ctx, pid)
		switch {
		case ctx.Err() != nil:
			return k, context.Cause(ctx)
		case err != nil:
			doubt = cmp.Or(doubt, err)
		}
		if k.running = k.running || one.running; one.endpoint != "" {
			return one, nil
		}
	}
	return k, doubt
}

// kubelet returns the kubelet that a process is; zero if it is none. An error concerns a
// process that is or seems to be one.
func (p *processes) kubelet(ctx context.Context, pid string) (k kubelet, err error) {
	one, err := p.open(ctx, pid)
	if err != nil {
		return k, nil // a stranger's
	}
	defer one.Close()
	name, err := one.program()
	if errors.Is(err, fs.ErrPermission) {
		if name, err := one.read(ctx, "comm", maxName); err == nil && isKubelet(strings.TrimSpace(string(name))) {
			return k, fmt.Errorf("cannot tell whether process %s is the kubelet: %w", pid, unreadable(fs.ErrPermission))
		}
	}
	if err != nil || !isKubelet(name) {
		return k, nil
	}
	k, err = one.kubelet(ctx, !slices.Contains(withOthers, name))
	if !k.running && (isGone(err) || errors.Is(err, errStranger)) {
		return k, nil // a stranger's process of that name must not cause errors either
	}
	if err != nil {
		err = fmt.Errorf("process %s, %s: %w", pid, name, unreadable(err))
	}
	return k, err
}

// kubelet returns the process's configuration, if it is the host's root's. own is true
// for a program that is only a kubelet.
func (p *process) kubelet(ctx context.Context, own bool) (k kubelet, err error) {
	image, err := p.image()
	if err != nil {
		return k, err
	}
	defer image.Close()
	endpoint, readErr := p.endpoint(ctx, own)
	if err := p.prove(ctx, image); err != nil {
		return k, err
	}
	if readErr != nil {
		readErr = fmt.Errorf("read which runtime the kubelet uses: %w", readErr)
	}
	return kubelet{running: own, endpoint: endpoint}, readErr
}

func isKubelet(name string) bool {
	return ownName.MatchString(name) || slices.Contains(withOthers, name)
}

// endpoint returns the endpoint in a kubelet's arguments or, if these are all its own, in
// its files. They are in its own mount namespace.
func (p *process) endpoint(ctx context.Context, own bool) (string, error) {
	line, err := p.read(ctx, "cmdline", maxCommandLine)
	if err != nil {
		return "", err
	}
	args := strings.Split(string(line), "\x00")
	if !own {
		return flag(args, "container-runtime-endpoint"), nil
	}
	root, err := openRoot(p.path("root"))
	if err != nil {
		return "", err
	}
	defer root.Close()
	return root.endpoint(ctx, args)
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

// inYAML finds the key at the start of a line, where people and kubeadm write it.
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
