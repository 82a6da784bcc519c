// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/textdiff"
)

// ready returns an error if pods would fail with the configuration: a plugin that they need
// neither exists nor is about to be installed, or does not speak its version. What this step
// writes is asked once it is staged.
func (j *job) ready(ctx context.Context) error {
	coming := slices.Clone(j.Vouched)
	for _, p := range j.plugins {
		if !isPresent(p) {
			coming = append(coming, filepath.Base(p.Object))
		}
	}
	errs := absent(j.net.types, j.searchDirs(), coming)
	if j.needsLoopback() {
		for _, err := range absent([]string{loopback}, j.searchDirs(), coming) {
			errs = append(errs, fmt.Errorf("%w: %w", errNoLoopback, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if holds(ctx, filepath.Join(j.ConfDir, j.file), j.raw) {
		return nil
	}
	var asked []string
	for _, plugin := range j.net.types {
		own, err := j.isInstalled(ctx, plugin)
		if err != nil {
			return err
		}
		if own {
			asked = append(asked, plugin)
		}
	}
	return j.speak(ctx, asked)
}

// isInstalled reports whether the plugin can be run as it will be after this step.
func (j *job) isInstalled(ctx context.Context, plugin string) (bool, error) {
	for _, p := range j.plugins {
		if filepath.Base(p.Object) == plugin && !isPresent(p) {
			return isAsWanted(ctx, p)
		}
	}
	return true, nil
}

// isAsWanted reports whether a plugin needs no write.
func isAsWanted(ctx context.Context, w ledger.Want) (bool, error) {
	var unrecorded *ledger.Book
	ctx = textdiff.With(ctx, nil, nil) // the step itself shows how it differs
	look, err := unrecorded.Check(ctx, "", ledger.Wants{List: []ledger.Want{w}})
	return err == nil && len(look.Changes) == 0, err
}

// speak asks plugins for their versions, each once. The caller vouches for those in
// Vouched.
func (j *job) speak(ctx context.Context, plugins []string) error {
	plugins = slices.DeleteFunc(slices.Clone(plugins), func(p string) bool { return slices.Contains(j.asked, p) || slices.Contains(j.Vouched, p) })
	err := j.net.speak(ctx, &runner{dirs: j.searchDirs(), staged: j.staged, mustAnswer: j.isOurs}, plugins)
	if err == nil {
		j.asked = append(j.asked, plugins...)
	}
	return err
}

// isOurs reports whether i brings the plugin, or renders its configuration.
func (i Install) isOurs(ctx context.Context, plugin string) bool {
	names, err := i.pluginNames(ctx)
	switch c := i.Config.(type) {
	case Agent:
		names = append(names, c.Plugin)
	case Chained:
		_, own, _ := c.plugin() // it has been rendered
		names = append(names, own)
	}
	return err != nil || slices.Contains(names, plugin)
}

// stagePlugin writes the plugin beside its place, and asks it for its versions there if the
// configuration names it. If only the mode or owner of an equal file is wrong, nothing is
// written.
func (j *job) stagePlugin(ctx context.Context, path string, to ledger.State) (*ledger.Staged, error) {
	if staged, err := onlyAttributes(ctx, path, to); staged != nil || err != nil {
		return staged, err
	}
	staged, err := ledger.File().Stage(ctx, path, to)
	plugin := filepath.Base(path)
	if err != nil || !j.names(plugin) || slices.Contains(j.asked, plugin) {
		return staged, err
	}
	j.staged = map[string]string{plugin: staged.Path}
	err = j.speak(ctx, []string{plugin})
	if j.staged = nil; err != nil {
		staged.Discard()
		return nil, err
	}
	return staged, nil
}

// onlyAttributes returns nil if the file has another content.
func onlyAttributes(ctx context.Context, path string, to ledger.State) (*ledger.Staged, error) {
	if to.SHA256 == "" { // it was not compared, since it is missing or has another size
		return nil, nil
	}
	now, err := ledger.File().Read(ctx, path)
	if err != nil || now.SHA256 != to.SHA256 || now.Type != to.Type {
		return nil, err
	}
	to.Content, to.Open = nil, nil
	return &ledger.Staged{
		State: to, Discard: func() {},
		Commit: func(context.Context) error { return hint(setAttributes(path, to)) },
	}, nil
}

// stageConf asks, at the last moment, the plugins of this step that could not be run before:
// their modes are right by now.
func (j *job) stageConf(ctx context.Context, path string, to ledger.State) (*ledger.Staged, error) {
	staged, err := ledger.File().Stage(ctx, path, to)
	if err != nil {
		return nil, err
	}
	commit := staged.Commit
	staged.Commit = func(ctx context.Context) error {
		if err := j.speak(ctx, j.net.types); err != nil {
			staged.Discard()
			return err
		}
		return commit(ctx)
	}
	return staged, nil
}

// setAttributes corrects mode and owner of a file, through a descriptor.
func setAttributes(path string, to ledger.State) error {
	d, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	f, err := d.Open(filepath.Base(path))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chown(to.UID, to.GID); err != nil {
		return err
	}
	if err := f.Chmod(filemode.Go(to.Mode)); err != nil { // after chown, which may take bits away
		return err
	}
	return f.Sync()
}
