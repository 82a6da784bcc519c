// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/slipway-dev/slipway/internal/hosttool"
	"github.com/slipway-dev/slipway/internal/remedy"
)

const (
	versionLimit = 5 * time.Second // for one plugin to report its versions
	outputLimit  = 1 << 20         // bytes of output kept
)

// runner finds and runs plugins for libcni: it finds staged plugins under their
// temporary names, and runs each with no environment but CNI's.
type runner struct {
	version.PluginDecoder
	staged     map[string]string // plugin: its temporary path
	dirs       []string
	mustAnswer func(ctx context.Context, plugin string) bool // for its versions, if not untrusted; nil: all must
}

// FindInPath looks among the staged plugins, then in the runner's directories.
func (r *runner) FindInPath(plugin string, _ []string) (string, error) {
	if path, ok := r.staged[plugin]; ok {
		return path, nil
	}
	return find(plugin, r.dirs)
}

// ExecPlugin runs the plugin at path and returns what it printed.
func (r *runner) ExecPlugin(caller context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(caller, versionLimit)
	defer cancel()
	var stdout, stderr limited
	c := hosttool.Command{
		Path: path, Args: []string{r.placeOf(path)}, // a program that is several plugins depends on it
		Env: cniOnly(environ), Dir: filepath.Dir(path),
		Stdin: bytes.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
	}
	switch err := c.Run(ctx); {
	case err == nil:
		return stdout.kept, nil
	case errors.Is(err, syscall.ETXTBSY):
		return nil, fmt.Errorf("%w: it is just being written: %w", ErrPluginMissing, err)
	case caller.Err() != nil:
		return nil, fmt.Errorf("did not answer in time: %w", context.Cause(caller))
	case ctx.Err() != nil: // although the caller has time left
		return nil, fmt.Errorf("did not answer within %s", versionLimit)
	case errors.Is(err, fs.ErrNotExist): // not the plugin: it has been found
		return nil, remedy.Add(err, "this host does not have its interpreter, or the loader that it is linked for")
	default:
		return nil, pluginError(err, stdout.kept, stderr.kept)
	}
}

func (r *runner) placeOf(path string) string {
	for plugin, staged := range r.staged {
		if staged == path {
			return filepath.Join(filepath.Dir(path), plugin)
		}
	}
	return path
}

// cniOnly removes the variables that libcni has copied from this process's
// environment.
func cniOnly(environ []string) (env []string) {
	for _, e := range environ {
		if strings.HasPrefix(e, "CNI_") {
			env = append(env, e)
		}
	}
	return env
}

// pluginError returns the plugin's own error, if it kept to the protocol: libcni
// recognises plugins that predate VERSION by the exact text of theirs.
func pluginError(err error, stdout, stderr []byte) error {
	var said types.Error
	if json.Unmarshal(stdout, &said) == nil && said.Msg != "" {
		return &said
	}
	if text := strings.TrimSpace(string(stderr)); text != "" {
		return fmt.Errorf("%w: %.300q", err, text)
	}
	if errors.Is(err, fs.ErrPermission) {
		return remedy.Add(err, "needs execute permission, and a mount without noexec")
	}
	return err
}

// limited keeps the first outputLimit bytes and silently discards the rest. It does
// not embed a buffer, since its ReadFrom would be used instead of Write.
type limited struct{ kept []byte }

func (l *limited) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[:min(len(p), outputLimit-len(l.kept))]...)
	return len(p), nil
}
