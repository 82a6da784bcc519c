// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/input"
)

// appearance describes the guarded objects without reading files: the ledger, the folders, by
// their identity, and the files that decide whether the installation is as it should be. Until
// these are known, any change in the folders counts. Its cost depends only on the number of
// such files, not on that of others beside them.
func (r *guarding) appearance(ctx context.Context) string {
	var seen strings.Builder
	version, err := r.book.Version()
	fmt.Fprintln(&seen, version, err)
	i := r.Install
	describe := func(path string) { fmt.Fprintln(&seen, path, appearance(path)) }
	for _, dir := range append(i.binDirs(), i.ConfDir) {
		describe(dir)
		if r.watched == nil {
			change, _ := lastChange(dir)
			fmt.Fprintln(&seen, change)
		}
	}
	for _, path := range r.watched {
		describe(path)
	}
	if i.Exclusive || i.Config != nil && !isFixed(i.Config) {
		names, err := r.others.read(ctx, i.ConfDir, i.folder(recorded{}).decides)
		fmt.Fprintln(&seen, err)
		for _, name := range names {
			describe(filepath.Join(i.ConfDir, name))
		}
	}
	return seen.String()
}

// decisive lists the files whose change may require a repair.
func (j *job) decisive() []string {
	paths := []string{filepath.Join(j.ConfDir, j.ConfName)}
	for _, p := range j.plugins {
		paths = append(paths, p.Object)
	}
	plugins := []string{loopback}
	if j.net != nil {
		plugins = append(plugins, j.net.types...)
	}
	for _, plugin := range unique(plugins) {
		for _, dir := range j.searchDirs() {
			paths = append(paths, filepath.Join(dir, plugin))
		}
	}
	return paths
}

// decides reports whether a configuration that builds on the folder's content may
// depend on the file: a runtime loads it, or it was set aside. Temporary files have
// names that start with a dot.
func (f folder) decides(name string) bool {
	_, aside := f.origin(name)
	return !strings.HasPrefix(name, ".") && (aside || isConfName(name))
}

// listing holds the relevant names in a folder, which is read again only after a
// name has been added or removed.
type listing struct {
	change string // the folder's last one when it was read; empty: read it again
	names  []string
	err    error
}

func (l *listing) read(ctx context.Context, dir string, counts func(name string) bool) ([]string, error) {
	change, settled := lastChange(dir) // first, so that the next look sees later changes
	if change != l.change {
		l.names, l.err = input.ReadNames(ctx, dir, counts)
	}
	if l.change = change; !settled || ctx.Err() != nil {
		l.change = ""
	}
	return l.names, l.err
}
