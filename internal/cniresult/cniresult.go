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
	"slices"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/input"
)

// ErrInUse is matched by the error for what sandboxes need to be deleted: without the
// plugins that gave a pod its network the runtime cannot take it back, and containerd not
// without a configuration either, so pods would be stuck.
var ErrInUse = code.New(code.CNIInUse, "sandboxes need it to be deleted")

// Dir is where libcni keeps what each sandbox was given (CacheDir in libcni/api.go),
// until the sandbox is deleted.
const Dir = "/var/lib/cni/results"

// maxResult bounds one of these files: a configuration and a result.
const maxResult = 4 << 20

// Result is what libcni caches of a network of a sandbox (cniCacheV1).
type Result struct {
	ContainerID string `json:"containerId"`
	NetworkName string `json:"networkName"`
	Config      []byte `json:"config"`

	// Plugins are the names of those in Config.
	Plugins []string `json:"-"`
}

// InUse returns an error that matches [ErrInUse] if sandboxes have a result in dir that
// needs the object, as one may that cannot be read.
func InUse(ctx context.Context, dir, object string, needs func(Result) bool) error {
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

// FileInUse returns an error that matches [ErrInUse] if sandboxes have a result in dir
// that needs the file: a plugin by its name, or the configuration of their network.
func FileInUse(ctx context.Context, dir, path string) error {
	var conf struct{ Name string }
	content, err := input.ReadFile(ctx, path, input.MaxNetwork)
	isConf := err == nil && json.Unmarshal(content, &conf) == nil && conf.Name != ""
	return InUse(ctx, dir, path, func(r Result) bool {
		return isConf && r.NetworkName == conf.Name || slices.Contains(r.Plugins, filepath.Base(path))
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
	var conf struct {
		Type    string
		Plugins []struct{ Type string }
	}
	if err := json.Unmarshal(cached.Config, &conf); err != nil {
		return cached, err
	}
	cached.Plugins = []string{conf.Type}
	for _, p := range conf.Plugins {
		cached.Plugins = append(cached.Plugins, p.Type)
	}
	return cached, nil
}
