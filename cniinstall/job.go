// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
)

// job is an Install with the state found on the node.
type job struct {
	Install
	plugins []*target
	conf    *target // nil: none
	net     *network
	asides  []aside                  // in the order in which they go
	dirs    []string                 // missing ones, outermost first
	journal *journal.Journal         // nil: no recording
	known   map[string]journal.Entry // recorded files, by path

	opened map[string]*durable.Dir // the existing folders
}

// survey reads the node and changes nothing. It finds errors in the request or the
// configuration before anything is touched. The caller closes the job.
func (i Install) survey(ctx context.Context) (*job, error) {
	i, err := i.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := i.checkExclusive(); err != nil {
		return nil, err
	}
	j := &job{Install: i, journal: journal.From(ctx)}
	if err := j.look(ctx); err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

func (j *job) look(ctx context.Context) (err error) {
	if j.known, err = recorded(ctx, j.journal); err != nil {
		return err
	}
	if err := j.openDirs(); err != nil {
		return err
	}
	if j.conf, j.net, err = j.render(ctx); err != nil {
		return err
	}
	if j.plugins, err = j.pluginTargets(ctx); err != nil {
		return err
	}
	for _, t := range j.targets() {
		if err := t.inspect(ctx, j.dirOf(t)); err != nil {
			return err
		}
	}
	j.passOver()
	if err := j.present(); err != nil {
		return err
	}
	if err := j.findDirs(); err != nil {
		return err
	}
	return j.findAsides(ctx)
}

// openDirs opens the folders that exist.
func (j *job) openDirs() error {
	if j.opened == nil {
		j.opened = map[string]*durable.Dir{}
	}
	for _, dir := range j.folders() {
		if j.opened[dir] != nil {
			continue
		}
		d, err := openDir(dir)
		if err != nil {
			return err
		}
		if d != nil {
			j.opened[dir] = d
		}
	}
	return nil
}

// openDir opens a folder, or returns nil if there is none.
func openDir(path string) (*durable.Dir, error) {
	d, err := durable.OpenDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return d, hint(err)
}

func (j *job) close() {
	for _, d := range j.opened {
		d.Close() // all writes through it are synced
	}
}

// dirOf returns a target's folder, or nil if it does not exist.
func (j *job) dirOf(t *target) *durable.Dir { return j.opened[filepath.Dir(t.path)] }

// confDir returns the configuration's folder, or nil if it does not exist or is not
// needed.
func (j *job) confDir() *durable.Dir { return j.opened[j.ConfDir] }

// passOver skips plugin folders that need a write but are not writable, as long as
// there is another.
func (j *job) passOver() {
	var shut []string
	for _, dir := range j.binDirs() {
		lacks := func(t *target) bool { return t.need != nothing && filepath.Dir(t.path) == dir }
		if slices.ContainsFunc(j.plugins, lacks) && writable(dir) != nil {
			shut = append(shut, dir)
		}
	}
	if len(shut) < len(j.binDirs()) {
		j.plugins = slices.DeleteFunc(j.plugins, func(t *target) bool { return slices.Contains(shut, filepath.Dir(t.path)) })
	}
}

// targets returns all files, the configuration last.
func (j *job) targets() []*target {
	if j.conf == nil {
		return j.plugins
	}
	return append(slices.Clone(j.plugins), j.conf)
}

// pending returns the targets with one of these needs.
func (j *job) pending(needs ...need) []*target {
	return slices.DeleteFunc(slices.Clone(j.targets()), func(t *target) bool { return !slices.Contains(needs, t.need) })
}

// present names the plugins that pods need and that neither exist nor are about to
// be installed.
func (j *job) present() error {
	if j.net == nil {
		return nil
	}
	coming := map[string]bool{}
	for _, t := range j.plugins {
		coming[t.plugin] = coming[t.plugin] || t.need != nothing
	}
	for _, plugin := range j.Elsewhere {
		coming[plugin] = true
	}
	return errors.Join(j.net.present(j.runner(), coming), j.loopbackPresent(coming))
}

func (j *job) loopbackPresent(coming map[string]bool) error {
	if !j.needsLoopback() || coming[loopback] {
		return nil
	}
	if _, err := find(loopback, j.searchDirs()); err != nil {
		return fmt.Errorf("%w: %w", ErrNoLoopback, err)
	}
	return nil
}

func (j *job) runner() *runner {
	r := &runner{dirs: j.searchDirs(), staged: map[string]string{}, mustAnswer: j.isOurs}
	for _, t := range j.plugins {
		if t.staged != nil && !t.staged.done {
			r.staged[t.plugin] = t.staged.file.Name()
		}
	}
	return r
}

// isOurs reports whether i brings the plugin, or renders its configuration.
func (i Install) isOurs(ctx context.Context, plugin string) bool {
	names, err := i.brought(ctx)
	switch c := i.Config.(type) {
	case Agent:
		names = append(names, c.Plugin)
	case Chained:
		plugin, _ := c.plugin() // it has been rendered
		own, _ := pluginType(plugin)
		names = append(names, own)
	}
	return err != nil || slices.Contains(names, plugin)
}

// early lists the configuration's plugins to run before anything is touched: all of
// them if the configuration will be published, otherwise only new ones. Of the
// plugins to install, only staged ones can be run; one with a wrong mode comes
// late. The caller vouches for those in Elsewhere.
func (j *job) early(isStaged bool) []string {
	if j.net == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(j.net.types), func(name string) bool {
		if slices.Contains(j.Elsewhere, name) {
			return true
		}
		switch j.needOf(name) {
		case content:
			return !isStaged
		case attributes:
			return true
		}
		return j.conf.need != content
	})
}

// late lists the plugins that could not be run before their mode was corrected.
func (j *job) late() []string {
	if j.net == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(j.net.types), func(name string) bool {
		return j.needOf(name) != attributes || j.conf.need != content || slices.Contains(j.Elsewhere, name)
	})
}

// needOf returns the plugin's greatest need in all folders.
func (j *job) needOf(plugin string) (most need) {
	for _, t := range j.plugins {
		if t.plugin == plugin {
			most = max(most, t.need)
		}
	}
	return most
}

func (j *job) speak(ctx context.Context, plugins []string) error {
	if j.net == nil {
		return nil
	}
	return j.net.speak(ctx, j.runner(), plugins)
}

// writable returns an error if no file could be written in the folder, or in one
// made there.
func writable(dir string) error {
	_, err := durable.Writable(dir)
	return notWritable(dir, err)
}

func notWritable(dir string, err error) error {
	if err == nil {
		return nil
	}
	return unusable(dir, "is not writable: %w", hint(err))
}

// findDirs lists the missing folders of files to write. It returns an error if
// these could not be written, or run to ask for their versions, while nothing has been
// touched yet.
func (j *job) findDirs() error {
	asked := j.early(true)
	for _, t := range j.pending(content) {
		dir := filepath.Dir(t.path)
		missing, err := missingDirs(dir)
		if err != nil {
			return err
		}
		err = writable(dir)
		if err == nil && slices.Contains(asked, t.plugin) {
			err = usable(dir)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", t.path, err)
		}
		for _, dir := range missing {
			if !slices.Contains(j.dirs, dir) {
				j.dirs = append(j.dirs, dir)
			}
		}
	}
	return nil
}

// missingDirs lists dir and its missing parents, outermost first.
func missingDirs(dir string) ([]string, error) {
	var missing []string
	for ; ; dir = filepath.Dir(dir) {
		d, err := durable.OpenDir(dir)
		switch {
		case err == nil:
			slices.Reverse(missing)
			return missing, d.Close()
		case !errors.Is(err, fs.ErrNotExist):
			return nil, hint(err)
		}
		if _, linkErr := os.Lstat(dir); linkErr == nil { // another owner's link: neither made nor removed
			return nil, fmt.Errorf("%s is a symbolic link that leads nowhere: %w", dir, err)
		}
		missing = append(missing, dir)
	}
}

// changes lists the changes in the order in which they are made.
func (j *job) changes() []string {
	var changes []string
	for _, dir := range j.dirs {
		changes = append(changes, "make directory "+dir)
	}
	for _, t := range j.pending(attributes, content) {
		changes = append(changes, t.change())
	}
	for _, a := range j.asides {
		changes = append(changes, a.change())
	}
	return changes
}

// apply makes the changes: everything is staged and validated, then the plugins are
// published, then the configuration, then the other configurations are set aside.
func (j *job) apply(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := j.sweep(); err != nil {
		return err
	}
	if err := j.settle(ctx); err != nil {
		return err
	}
	if len(j.changes()) == 0 {
		return nil
	}
	defer func() {
		for _, t := range j.targets() {
			t.staged.discard()
		}
	}()
	if err := j.prepare(ctx); err != nil {
		return errors.Join(err, j.removeDirs(ctx), j.settle(ctx))
	}
	if err := j.publish(ctx); err != nil {
		return errors.Join(err, j.settle(ctx))
	}
	return j.sweep()
}

// publish puts all files in place, recording that in the journal before and after.
func (j *job) publish(ctx context.Context) error {
	if err := j.noteSums(ctx); err != nil {
		return hint(err)
	}
	if err := j.putAll(ctx); err != nil {
		return err
	}
	if err := j.complete(ctx); err != nil {
		return hint(err)
	}
	return j.setAside(ctx)
}

func (j *job) putAll(ctx context.Context) error {
	for _, t := range j.pending(attributes, content) {
		if t == j.conf {
			if err := j.speak(ctx, j.late()); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.put(j.dirOf(t)); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes leftovers of dead writers, but none of a live one. It runs first,
// to make room, and again last: if a writer was killed while it was starting a
// program, that program holds the writer's locks until it has started.
func (j *job) sweep() error {
	var errs []error
	for _, dir := range j.folders() {
		if d := j.opened[dir]; d != nil {
			errs = append(errs, d.Sweep())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove leftovers of a killed run: %w", hint(err))
	}
	return nil
}

// prepare does everything that can fail before the files are put in their places.
func (j *job) prepare(ctx context.Context) error {
	for _, dir := range j.dirs {
		if err := files.MkdirAll(ctx, j.journal, dir, dirMode); err != nil {
			return fmt.Errorf("make directory %s: %w", dir, hint(err))
		}
	}
	if err := j.openDirs(); err != nil {
		return err
	}
	if err := j.note(ctx); err != nil {
		return hint(err)
	}
	for _, t := range j.pending(content) {
		if err := t.stage(ctx, j.dirOf(t)); err != nil {
			return err
		}
	}
	return j.speak(ctx, j.early(true))
}
