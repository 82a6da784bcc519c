// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"

	"github.com/slipway-dev/slipway/internal/hosttool"
	"github.com/slipway-dev/slipway/internal/once"
)

// Validate returns an error unless a runtime that looks for plugins in binDirs (if
// none are given: /opt/cni/bin) could use the configuration conf, which is a list
// or that of a single plugin: libcni must be able to parse it, and every plugin
// must exist, be executable, and report, when run with CNI_COMMAND=VERSION, that it
// supports the configuration's version.
//
// Plugins run as the caller's user, so perhaps as root, in the calling thread's
// namespaces, for at most 5 seconds each, with no environment but CNI's. The error
// matches [ErrInvalid] or [ErrPluginMissing], or is that of a plugin that fails. An ipam
// plugin is not checked: the plugin that calls it is responsible for it. A plugin
// that users other than root and the caller may change, or replace in its directory,
// is not run, which is also an error.
func Validate(ctx context.Context, conf []byte, binDirs ...string) error {
	n, err := parse("", conf)
	if err != nil {
		return err
	}
	if len(binDirs) == 0 {
		binDirs = []string{defaultBinDir}
	}
	if errs := absent(n.types, binDirs, nil); len(errs) > 0 {
		return errors.Join(errs...)
	}
	return n.speak(ctx, &runner{dirs: binDirs}, n.types)
}

// absent returns an error for each plugin that is in none of the directories, nor about to be
// installed.
func absent(plugins, dirs, coming []string) (errs []error) {
	for _, plugin := range unique(plugins) {
		if _, err := find(plugin, dirs); err != nil && !slices.Contains(coming, plugin) {
			errs = append(errs, err)
		}
	}
	return errs
}

// speak runs each of the plugins, which are present, for its versions.
func (n *network) speak(ctx context.Context, r *runner, plugins []string) error {
	cni := libcni.NewCNIConfig(r.dirs, r)
	var errs []error
	for _, t := range unique(plugins) {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		info, err := cni.GetVersionInfo(ctx, t)
		if err != nil && r.excuses(ctx, t, err) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("run CNI plugin %s for its version: %w", t, err))
			continue
		}
		if supported := info.SupportedVersions(); !slices.Contains(supported, n.version) {
			errs = append(errs, n.invalid(slices.Index(n.types, t), fmt.Errorf("plugin %s does not speak cniVersion %s, only %s",
				t, n.version, strings.Join(supported, ", "))))
		}
	}
	return errors.Join(errs...)
}

// unanswered is the path of a plugin that has not answered for its versions in this run.
type unanswered string

// excuses reports whether err is no reason not to publish, but one for Advise.
func (r *runner) excuses(ctx context.Context, plugin string, err error) bool {
	untrusted := errors.Is(err, hosttool.ErrUntrusted)
	if r.mustAnswer == nil || ctx.Err() != nil || errors.Is(err, ErrPluginMissing) || !untrusted && r.mustAnswer(ctx, plugin) {
		return false
	}
	path, _ := r.FindInPath(plugin, nil)
	_, _ = once.Do(ctx, unanswered(path), func(context.Context) (error, error) { return err, nil })
	return true
}

// find returns the plugin's path in the first of dirs that has it.
func find(plugin string, dirs []string) (string, error) {
	path, err := invoke.FindInPath(plugin, dirs)
	if err != nil {
		return "", fmt.Errorf("%w: %s is not in %s", ErrPluginMissing, plugin, strings.Join(dirs, ", "))
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrPluginMissing, err)
	}
	if info.Mode().Perm()&0o111 == 0 && hasModes {
		return "", fmt.Errorf("%w: %s is not executable (mode %04o)", ErrPluginMissing, filepath.Clean(path), info.Mode().Perm())
	}
	return path, nil
}

func unique(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
