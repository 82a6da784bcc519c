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

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/record"
)

// bookName is the record's name in the state directory.
const bookName = "cni"

// job is an Install with what was found on the node.
type job struct {
	Install
	plugins []*target
	conf    *target // nil: none
	net     *network
	asides  []aside  // in the order in which they go
	dirs    []string // that are missing, outermost first
	book    *record.Book
	from    string // the owner before
	takes   bool   // over what is recorded
}

// survey looks, and changes nothing. What is wrong with the request or the
// configuration is found here, before anything is touched.
func (i Install) survey(ctx context.Context) (*job, error) {
	i, err := i.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := i.checkExclusive(); err != nil {
		return nil, err
	}
	j := &job{Install: i}
	if err := j.openBook(); err != nil {
		return nil, err
	}
	if j.conf, j.net, err = j.render(ctx); err != nil {
		return nil, err
	}
	if j.plugins, err = i.pluginTargets(); err != nil {
		return nil, err
	}
	for _, t := range j.targets() {
		if err := t.inspect(ctx); err != nil {
			return nil, err
		}
	}
	if err := j.present(); err != nil {
		return nil, err
	}
	if err := j.findDirs(); err != nil {
		return nil, err
	}
	return j, j.findAsides()
}

func (j *job) openBook() (err error) {
	if j.StateDir == "" {
		return nil
	}
	if j.book, err = record.Open(j.StateDir, bookName); err != nil {
		return err
	}
	j.from, _ = j.book.Owner()
	j.takes = len(j.book.Entries()) > 0 && j.from != j.Owner
	return nil
}

// targets are all files, the configuration last.
func (j *job) targets() []*target {
	if j.conf == nil {
		return j.plugins
	}
	return append(slices.Clone(j.plugins), j.conf)
}

// pending are the targets that need something.
func (j *job) pending(needs ...need) []*target {
	return slices.DeleteFunc(slices.Clone(j.targets()), func(t *target) bool { return !slices.Contains(needs, t.need) })
}

// present names the plugins of the configuration that are neither there nor coming.
func (j *job) present() error {
	if j.net == nil {
		return nil
	}
	coming := map[string]bool{}
	for _, t := range j.plugins {
		coming[t.plugin] = t.need != nothing
	}
	return j.net.present(j.runner(), coming)
}

func (j *job) runner() *runner {
	r := &runner{dirs: j.searchDirs(), staged: map[string]string{}}
	for _, t := range j.plugins {
		if t.staged != nil && !t.staged.done {
			r.staged[t.plugin] = t.staged.file.Name()
		}
	}
	return r
}

// early lists the configuration's plugins to be run before anything is
// touched: all for one to be published, else only new ones. Of those that are
// coming, only what is staged can be run; one whose mode is wrong comes late.
func (j *job) early(isStaged bool) []string {
	if j.net == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(j.net.types), func(name string) bool {
		switch j.needOf(name) {
		case content:
			return !isStaged
		case attributes:
			return true
		}
		return j.conf.need != content
	})
}

// late lists those that could not be run before their mode was put right.
func (j *job) late() []string {
	if j.net == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(j.net.types), func(name string) bool {
		return j.needOf(name) != attributes || j.conf.need != content
	})
}

func (j *job) needOf(plugin string) need {
	for _, t := range j.plugins {
		if t.plugin == plugin {
			return t.need
		}
	}
	return nothing
}

func (j *job) speak(ctx context.Context, plugins []string) error {
	if j.net == nil {
		return nil
	}
	return j.net.speak(ctx, j.runner(), plugins)
}

// findDirs lists the missing folders that something is to be written to.
func (j *job) findDirs() error {
	for _, t := range j.pending(content) {
		missing, err := missingDirs(filepath.Dir(t.path))
		if err != nil {
			return err
		}
		for _, dir := range missing {
			if !slices.Contains(j.dirs, dir) {
				j.dirs = append(j.dirs, dir)
			}
		}
	}
	return nil
}

// missingDirs lists dir and those above it that are missing, outermost first.
func missingDirs(dir string) ([]string, error) {
	var missing []string
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case err == nil && info.IsDir():
			slices.Reverse(missing)
			return missing, nil
		case err == nil:
			return nil, fmt.Errorf("%s is not a directory", dir)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, hint(err)
		}
		if _, linkErr := os.Lstat(dir); linkErr == nil { // it is somebody's: not to be made, nor taken back
			return nil, fmt.Errorf("%s is a symbolic link that leads nowhere: %w", dir, err)
		}
		missing = append(missing, dir)
	}
}

// changes says what is to be done, in the order in which it is done.
func (j *job) changes() []string {
	var changes []string
	for _, dir := range j.dirs {
		changes = append(changes, "make directory "+dir)
	}
	if j.takes {
		changes = append(changes, fmt.Sprintf("take over the CNI installation from owner %q", j.from))
	}
	for _, t := range j.pending(attributes, content) {
		changes = append(changes, t.change())
	}
	for _, a := range j.asides {
		changes = append(changes, a.change())
	}
	return changes
}

// apply makes the changes: everything is staged and validated, then the
// plugins are published, then the configuration, then others' are set aside.
func (j *job) apply(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := j.sweep(); err != nil {
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
		return errors.Join(err, j.removeDirs())
	}
	if j.book != nil {
		if err := j.book.SetOwner(j.Owner); err != nil {
			return hint(err)
		}
	}
	if err := j.publish(ctx); err != nil {
		return err
	}
	return j.sweep()
}

// publish puts everything in its place. It stops where something fails: the
// next file that is set aside must not let one be first that never was.
func (j *job) publish(ctx context.Context) error {
	for _, t := range j.pending(attributes, content) {
		if t == j.conf {
			if err := j.speak(ctx, j.late()); err != nil {
				return err
			}
		}
		if err := j.put(ctx, t); err != nil {
			return err
		}
	}
	for _, a := range j.asides {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := j.setAside(a); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what dead writers left, and nothing of a living one. It is done
// first, for the room, and again last: a program that a writer was just
// starting when it was killed holds the writer's locks until it has started.
func (j *job) sweep() error {
	errs := []error{durable.Sweep(j.BinDir), durable.Sweep(j.ConfDir)}
	if j.StateDir != "" {
		errs = append(errs, durable.Sweep(j.StateDir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove what a killed run left: %w", hint(err))
	}
	return nil
}

// prepare does all that can go wrong beside the files' places.
func (j *job) prepare(ctx context.Context) error {
	for _, dir := range j.dirs {
		if err := j.makeDir(dir); err != nil {
			return fmt.Errorf("make directory %s: %w", dir, hint(err))
		}
	}
	for _, t := range j.pending(content) {
		if err := t.stage(ctx); err != nil {
			return err
		}
	}
	return j.speak(ctx, j.early(true))
}
