// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package programs builds the programs of the proofs, such as nodeinit or a Kubernetes,
// once: the results stay in the directory slipway of os.UserCacheDir. If several
// processes need the same program at the same time, one builds it and the others wait.
package programs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Program is a command of this repository.
type Program struct {
	Package string            // from the repository's root, such as ./examples/nodeinit
	Added   map[string]string // files that are compiled with it, by their paths from the root
	Arch    string            // target architecture, on Linux; if empty, this process's platform
}

// Build returns the program's path. It is built without cgo, and built again when its
// sources have changed.
func (p Program) Build(ctx context.Context) (path string, err error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	state, err := json.Marshal([]any{root, runtime.Version(), runtime.GOOS, runtime.GOARCH, p})
	if err != nil {
		return "", err
	}
	dir, err := cacheDir("programs", key(state))
	if err != nil {
		return "", err
	}
	unlock, err := lock(ctx, dir+".lock", nil)
	if err != nil {
		return "", err
	}
	defer unlock()
	path = filepath.Join(dir, filepath.Base(p.Package))
	args, env := []string{"build", "-ldflags=-s -w", "-o", path}, []string(nil)
	if p.Arch != "" {
		env = []string{"GOOS=linux", "GOARCH=" + p.Arch}
	}
	if len(p.Added) > 0 {
		overlay, err := p.overlay(root, dir)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	// go build does not touch the file if nothing has changed.
	return path, Go(ctx, io.Discard, filepath.Join(root, p.Package), env, append(args, ".")...)
}

// Go runs the go command in dir, as for everything built here: without cgo, workspaces
// and the caller's flags. Its output goes to log, and into the error.
func Go(ctx context.Context, log io.Writer, dir string, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(cmd.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off"), env...)
	var said bytes.Buffer
	out := io.MultiWriter(log, &said)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s in %s: %w: %s", cmd, dir, err, said.Bytes())
	}
	return nil
}

// Require makes in dir a module that requires another one, such as example.com/module@v1.2.3,
// whose commands are built there with -mod=mod: those of a module with replace directives cannot
// be installed by version.
func Require(ctx context.Context, log io.Writer, dir, module string) error {
	path, _, _ := strings.Cut(module, "@")
	return errors.Join(os.MkdirAll(dir, 0o755), Go(ctx, log, dir, nil, "mod", "init", "built"),
		Go(ctx, log, dir, nil, "mod", "edit", "-require="+module), Go(ctx, log, dir, nil, "mod", "download", path))
}

// overlay writes the added files into dir, and the overlay file for the compiler.
func (p Program) overlay(root, dir string) (path string, err error) {
	replace := map[string]string{}
	for name, content := range p.Added {
		added := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(added, []byte(content), 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(root, name)] = added
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o644)
}

// Root returns the repository's root, which is above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/slipway-dev/slipway\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("the working directory is not in the repository: %w", os.ErrNotExist)
		}
	}
}

// Kept returns the cached directory group/name, which fill has filled. While another process
// fills it, Kept prints a line on log and waits. A cached directory is not checked again: its
// name identifies its inputs.
func Kept(ctx context.Context, log io.Writer, group, name string, fill func(dir string) error) (string, error) {
	parent, err := cacheDir(group)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(parent, name)
	unlock, err := lock(ctx, dir+".lock", func() { fmt.Fprintf(log, "waiting for another process that makes %s\n", dir) })
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	temp := dir + ".new" // a killed process may have left a part of it
	defer os.RemoveAll(temp)
	if err := errors.Join(os.RemoveAll(temp), os.Mkdir(temp, 0o755)); err != nil {
		return "", err
	}
	if err := fill(temp); err != nil {
		return "", fmt.Errorf("make %s: %w", dir, err)
	}
	return dir, os.Rename(temp, dir)
}

func cacheDir(sub ...string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w", err)
	}
	dir := filepath.Join(append([]string{cache, "slipway"}, sub...)...)
	return dir, os.MkdirAll(dir, 0o755)
}

func key(state []byte) string {
	sum := sha256.Sum256(state)
	return hex.EncodeToString(sum[:8])
}
