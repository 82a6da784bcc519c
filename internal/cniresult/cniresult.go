// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cniresult reads libcni's cache of sandboxes: which of them need a plugin or a
// network for their deletion.
package cniresult

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/input"
)

// ErrInUse is matched by the error for an object that sandboxes need for their deletion.
// Without the plugins that gave a pod its network the runtime cannot remove that network, nor
// can containerd without a configuration, so pods would be stuck.
var ErrInUse = code.New(code.CNIInUse, "sandboxes need it for their deletion")

// Dirs lists where libcni keeps the result for each sandbox until it is deleted: the
// directory that the caller gives or, if none, libcni's own CacheDir (libcni/api.go), which
// containerd, CRI-O and Podman do not change, and that of cri-dockerd and of kubelets
// with dockershim (--cni-cache-dir).
func Dirs(given string) []string {
	if given != "" {
		return []string{given}
	}
	return []string{"/var/lib/cni/results", "/var/lib/cni/cache/results"}
}

// maxResult bounds one of these files: a configuration and a result.
const maxResult = 4 << 20

// Result is libcni's cache entry for a network of a sandbox (cniCacheV1).
type Result struct {
	ContainerID string `json:"containerId"`
	NetworkName string `json:"networkName"`
	Config      []byte `json:"config"`
}

// Names reports whether the configuration names the plugin.
func (r Result) Names(plugin string) bool { return Names(r.Config, plugin) }

// Cache is libcni's cache on a node.
type Cache struct {
	Dirs []string

	// Sandboxes lists the IDs of all sandboxes that the node's container runtime knows: a
	// result for any other counts for nothing, unless it is new. If nil, or if it fails,
	// each counts.
	Sandboxes func(context.Context) ([]string, error)
}

// InUse returns an error that matches [ErrInUse] if sandboxes have a result that needs the
// object, which is kept then. An unreadable result counts as needing it, and its sandbox is
// known by its name.
func (c Cache) InUse(ctx context.Context, object string, needs func(Result) bool) error {
	for _, dir := range c.Dirs {
		if err := c.inUse(ctx, dir, object, needs); err != nil {
			return err
		}
	}
	return nil
}

func (c Cache) inUse(ctx context.Context, dir, object string, needs func(Result) bool) error {
	names, err := input.ReadNames(ctx, dir, func(string) bool { return true })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the sandboxes that need %s: %w", object, err)
	}
	results, unread := map[string]string{}, map[string]error{} // the first result of each sandbox
	slices.Sort(names)
	for _, name := range names {
		cached, err := readResult(ctx, filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was deleted meanwhile
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			results[name], unread[name] = name, err
		case results[cached.ContainerID] == "" && needs(cached):
			results[cached.ContainerID] = name
		}
	}
	doubt, remedy := c.dropStale(ctx, dir, results)
	if len(results) == 0 {
		return nil
	}
	first := slices.Sorted(maps.Values(results))[0]
	if err := unread[first]; err != nil {
		return fmt.Errorf("%w: cannot tell which sandbox needs %s (%w)%s: %s", ErrInUse, filepath.Join(dir, first), err, doubt, remedy)
	}
	return fmt.Errorf("%w: %d, by %s%s: %s", ErrInUse, len(results), filepath.Join(dir, first), doubt, remedy)
}

// starting bounds how long a sandbox has a result before the runtime lists it: containerd
// does so only once the network is there and the sandbox runs.
const starting = 10 * time.Minute

// dropStale drops the results in dir, by their sandboxes, that are of none any more. It
// returns what is in doubt about the others, and what helps.
func (c Cache) dropStale(ctx context.Context, dir string, results map[string]string) (doubt, remedy string) {
	remedy = "delete the pods that have a network from it, and undo again"
	if c.Sandboxes == nil || len(results) == 0 {
		return "", remedy
	}
	var listed []string
	var err error
	done := make(chan struct{})
	go func() { // in the process's own namespaces: this thread may be in the host's
		defer close(done)
		listed, err = c.Sandboxes(ctx)
	}()
	<-done
	if err != nil {
		return fmt.Sprintf(" (whether they still exist is unknown: %v)", err),
			"delete the pods that have a network from it, remove the results of those that do not exist, and undo again"
	}
	maps.DeleteFunc(results, func(sandbox, name string) bool {
		if slices.ContainsFunc(listed, func(id string) bool { return strings.Contains("-"+sandbox+"-", "-"+id+"-") }) {
			return false
		}
		info, err := os.Lstat(filepath.Join(dir, name))
		isNew := err != nil || time.Since(info.ModTime()) < starting
		if isNew {
			doubt = fmt.Sprintf(" (%s is none that the runtime lists, but may be starting: its result is younger than %v)", sandbox, starting)
		}
		return !isNew
	})
	if doubt != "" {
		remedy += fmt.Sprintf("; if there are none, undo again in %v", starting)
	}
	return doubt, remedy
}

// FileInUse is InUse for a file: a plugin by its name, or the configuration of a network.
func (c Cache) FileInUse(ctx context.Context, path string) error {
	var conf struct{ Name string }
	content, err := input.ReadFile(ctx, path, input.MaxNetwork)
	isConf := err == nil && json.Unmarshal(content, &conf) == nil && conf.Name != ""
	return c.InUse(ctx, path, func(r Result) bool {
		return isConf && r.NetworkName == conf.Name || r.Names(filepath.Base(path))
	})
}

func readResult(ctx context.Context, path string) (cached Result, err error) {
	content, err := input.ReadFile(ctx, path, maxResult)
	if err != nil {
		return cached, err
	}
	if err := json.Unmarshal(content, &cached); err != nil {
		return cached, err
	}
	if !json.Valid(cached.Config) { // of a libcni before 0.8, which did not cache the configuration
		return cached, errors.New("it has no configuration")
	}
	return cached, nil
}
