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
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/process"
)

// defaultEndpoint is used by a kubelet without configuration (KubeletConfiguration
// v1beta1, containerRuntimeEndpoint).
const defaultEndpoint = "/run/containerd/containerd.sock"

// kubelet is that of the host.
type kubelet struct {
	endpoint  string
	directory string // of its distribution's runtimes, if it names no endpoint
}

// socket returns the path that the kubelet names, if there is a socket.
func (k kubelet) socket(h host) (string, error) {
	path, err := socket(k.endpoint)
	if err != nil {
		return "", fmt.Errorf("the kubelet's runtime endpoint %w", err)
	}
	f, err := h.socket(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w at the kubelet's runtime endpoint: %w", errNoRuntime, err)
	case err != nil:
		return "", fmt.Errorf("the kubelet's runtime endpoint: %w", err)
	}
	return path, f.Close()
}

// ownName matches the name of a kubelet's program, to which some distributions add a
// version.
var ownName = regexp.MustCompile(`^kubelet([-_.]?v?[0-9][0-9.]*)?$`)

// withOthers are programs that contain a kubelet among others, and the directories of their
// runtimes. They do not take a kubelet's --config, and their default is not the kubelet's.
var withOthers = map[string]string{"k3s": "/run/k3s/", "rke2": "/run/k3s/", "kubelite": "/var/snap/microk8s/"}

func isKubelet(name string) bool { return ownName.MatchString(name) || withOthers[name] != "" }

// findKubelet looks for the kubelet among the processes of the host, and reads which
// runtime it uses. An error is why there may be another.
func (p *processes) findKubelet(ctx context.Context) (k kubelet, doubt error) {
	for one, err := range process.In(ctx, p.proc) {
		if err != nil {
			return k, err
		}
		its, err := p.kubelet(ctx, one)
		if its.endpoint != "" {
			return its, nil
		}
		k.directory, doubt = cmp.Or(k.directory, its.directory), cmp.Or(doubt, err)
	}
	return k, doubt
}

// kubelet returns the kubelet that a process is; zero if it is none. An error concerns one
// that is or seems to be a kubelet: a stranger's process of that name, or one that has
// ended, must not cause any.
func (p *processes) kubelet(ctx context.Context, one process.Process) (k kubelet, err error) {
	if p.isRoots(ctx, one) != nil {
		return k, nil
	}
	name, err := one.Program()
	if errors.Is(err, fs.ErrPermission) {
		if s, err := one.Status(ctx); err == nil && isKubelet(s.Name) {
			return k, fmt.Errorf("cannot tell whether process %d is the kubelet: %w", one.PID, fs.ErrPermission)
		}
	}
	if err != nil || !isKubelet(name) {
		return k, nil
	}
	k, readErr, err := p.proven(ctx, one)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH), errors.Is(err, errStranger):
		return kubelet{}, nil
	case err != nil:
		return kubelet{}, fmt.Errorf("process %d, %s: %w", one.PID, name, err)
	case readErr != nil:
		return k, fmt.Errorf("process %d, %s: read which runtime it uses: %w", one.PID, name, readErr)
	}
	return k, nil
}

// proven returns the kubelet that a process with such a name is, if it is the host's
// root's, and why its configuration cannot be read. All of it concerns one program, whose
// image stays open.
func (p *processes) proven(ctx context.Context, one process.Process) (k kubelet, readErr, err error) {
	image, err := os.Open(one.Path("maps"))
	if err != nil {
		return k, nil, err
	}
	defer image.Close()
	name, err := one.Program()
	if err == nil && !isKubelet(name) {
		err = errStranger
	}
	if err != nil {
		return k, nil, err
	}
	k.directory = withOthers[name]
	k.endpoint, readErr = endpoint(ctx, one, k.directory == "")
	return k, readErr, p.prove(ctx, one, image)
}

// endpoint returns the endpoint in a kubelet's arguments or, if these are all its own, in
// its files, or its default. The files are in its own mount namespace.
func endpoint(ctx context.Context, one process.Process, own bool) (string, error) {
	line, err := one.Read(ctx, "cmdline")
	args := strings.Split(line, "\x00")
	named := flag(args, "container-runtime-endpoint")
	if err != nil || named != "" || !own {
		return named, err
	}
	root, err := openRoot(one)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if named, err = configured(ctx, root, args); err != nil {
		return "", err
	}
	return cmp.Or(named, defaultEndpoint), nil
}

// configured returns the endpoint in the files of a kubelet with these arguments: each
// file of --config-dir, in the order of their names, wins over those before it
// (kubernetes.io, Set Kubelet Parameters Via A Configuration File).
func configured(ctx context.Context, root *os.File, args []string) (endpoint string, err error) {
	var files []string
	if config := flag(args, "config"); config != "" {
		files = append(files, config)
	}
	if dir := flag(args, "config-dir"); dir != "" {
		more, err := dropIns(ctx, root, dir)
		if err != nil {
			return "", err
		}
		files = append(files, more...)
	}
	for _, file := range files {
		content, err := read(ctx, root, file)
		if err != nil {
			return "", err
		}
		endpoint = cmp.Or(endpointIn(content), endpoint)
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
func dropIns(ctx context.Context, root *os.File, dir string) ([]string, error) {
	f, err := process.OpenIn(root, dir)
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

func read(ctx context.Context, root *os.File, path string) ([]byte, error) {
	f, err := process.OpenIn(root, path)
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

// endpointIn returns the containerRuntimeEndpoint of a KubeletConfiguration.
func endpointIn(content []byte) string {
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
