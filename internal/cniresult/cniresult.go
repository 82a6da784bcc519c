// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cniresult reads what libcni has cached of sandboxes: which of them need a plugin
// or a network to be deleted.
package cniresult

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/input"
)

// ErrInUse is matched by the error for what sandboxes need to be deleted: without the
// plugins that gave a pod its network the runtime cannot take it back, and containerd not
// without a configuration either, so pods would be stuck.
var ErrInUse = code.New(code.CNIInUse, "sandboxes need it to be deleted")

// Dirs lists where libcni keeps what each sandbox was given until it is deleted: the one
// folder that the caller gives or, without, results in libcni's own CacheDir
// (libcni/api.go), which containerd, CRI-O and Podman leave as it is, and in that of
// cri-dockerd and of kubelets with dockershim (--cni-cache-dir).
func Dirs(given string) []string {
	if given != "" {
		return []string{given}
	}
	return []string{"/var/lib/cni/results", "/var/lib/cni/cache/results"}
}

// maxResult bounds one of these files: a configuration and a result.
const maxResult = 4 << 20

// Result is what libcni caches of a network of a sandbox (cniCacheV1).
type Result struct {
	ContainerID string `json:"containerId"`
	NetworkName string `json:"networkName"`
	Config      []byte `json:"config"`
}

// Names reports whether the configuration names the plugin.
func (r Result) Names(plugin string) bool { return Names(r.Config, plugin) }

// InUse returns an error that matches [ErrInUse] if sandboxes have a result in one of dirs
// that needs the object, as one may that cannot be read.
func InUse(ctx context.Context, dirs []string, object string, needs func(Result) bool) error {
	for _, dir := range dirs {
		if err := inUse(ctx, dir, object, needs); err != nil {
			return err
		}
	}
	return nil
}

func inUse(ctx context.Context, dir, object string, needs func(Result) bool) error {
	names, err := input.ReadNames(ctx, dir, func(string) bool { return true })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("which sandboxes need %s: %w", object, err)
	}
	sandboxes := map[string]bool{}
	for _, name := range names {
		cached, err := readResult(ctx, filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was deleted meanwhile
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("%s is kept: %w: it cannot be told by whom %s is needed (%w)", object, ErrInUse, filepath.Join(dir, name), err)
		case needs(cached):
			sandboxes[cached.ContainerID] = true
		}
	}
	if len(sandboxes) == 0 {
		return nil
	}
	return fmt.Errorf("%s is kept: %w: %d, by %s: delete the pods with a network of it, and undo this again", object, ErrInUse, len(sandboxes), dir)
}

// FileInUse returns an error that matches [ErrInUse] if sandboxes have a result in one of
// dirs that needs the file: a plugin by its name, or the configuration of their network.
func FileInUse(ctx context.Context, dirs []string, path string) error {
	var conf struct{ Name string }
	content, err := input.ReadFile(ctx, path, input.MaxNetwork)
	isConf := err == nil && json.Unmarshal(content, &conf) == nil && conf.Name != ""
	return InUse(ctx, dirs, path, func(r Result) bool {
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
	if !json.Valid(cached.Config) { // of a libcni before 0.8, which kept none
		return cached, errors.New("it has no configuration")
	}
	return cached, nil
}
