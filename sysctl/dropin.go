// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// DropIn is an action that sets kernel values and writes them to a sysctl.d file,
// so that they apply both now and after the next boot. On hosts with systemd, udev
// applies the file's globs to links that appear later, but not to renamed links;
// other hosts do neither. [Watch] signals when to apply it again. [Cilium] is the
// drop-in of Cilium's agent.
type DropIn struct {
	// Dir is the file's directory. If empty, it is /etc/sysctl.d.
	Dir string
	// Name is the file's name, which must end with .conf. It is required.
	Name string
	// Settings are the file's lines. At least one is required.
	Settings []Setting
	// ExistingDir makes a missing Dir an error. Otherwise Dir is made, with mode
	// 0755.
	ExistingDir bool
	// Reload applies the sysctl.d files; [Systemd], for example, applies all of
	// them. If nil, only this file's values are set, directly. Values that still
	// differ after a Reload are set directly too.
	Reload Reloader
	// Dirs are the directories with files that may override this one, highest
	// priority first. If nil, they are those that [Effective] reads if Dir is one
	// of them, and otherwise Dir alone.
	Dirs []string
	// Kernel is the kernel whose values are read and set. The zero value is the
	// calling thread's.
	Kernel Kernel
}

func (d DropIn) dir() string {
	if d.Dir == "" {
		return "/etc/sysctl.d"
	}
	return filepath.Clean(d.Dir)
}

func (d DropIn) path() string { return filepath.Join(d.dir(), d.Name) }

// content returns the file's wanted content, or an error if the settings cannot be
// written as a file.
func (d DropIn) content(ctx context.Context) ([]byte, error) {
	switch {
	case d.Name == "" && len(d.Settings) == 0:
		return nil, errors.New("drop-in: no name and no settings given")
	case d.Name == "":
		return nil, errors.New("drop-in: no name given")
	case len(d.Settings) == 0:
		return nil, fmt.Errorf("drop-in %q: no settings given", d.Name)
	case d.Name != filepath.Base(d.Name) || filepath.Ext(d.Name) != ".conf" || d.Name[0] == '.':
		return nil, fmt.Errorf("drop-in name %q is not a file name ending with .conf", d.Name)
	}
	header, err := headerOf(journal.From(ctx))
	if err != nil {
		return nil, err
	}
	return encode(header, d.Settings)
}

// Validate checks the name and the settings of d, independently of the node.
func (d DropIn) Validate() error {
	if _, err := d.content(context.Background()); err != nil {
		return err
	}
	return validate(d.Settings)
}

func (d DropIn) dirs() []string {
	switch {
	case d.Dirs != nil:
		return d.Dirs
	case slices.Contains(systemdDirs(), d.dir()):
		return systemdDirs()
	}
	return []string{d.dir()}
}

// Check lists the changes that Apply would make: make the directory, write the
// file, reload, and set values. With a Reloader, these include values from other
// files that differ now; each line names the file. If a reload is impossible, a
// line explains why values are set directly.
//
// If the file must be written and its directory is read-only, the error matches
// [ErrReadOnlyDir]; Apply then sets the values, and also returns this error.
//
// A value that differs is a change even if the file is right and, with a Reloader,
// even if this process may not write it, because the Reloader may. Settings without
// effect are not changes: see [DropIn.Advise].
func (d DropIn) Check(ctx context.Context) ([]string, error) {
	p, err := d.plan(ctx)
	if p == nil {
		return nil, err
	}
	shared, conflict := p.checkWishes(ctx, d.Kernel)
	return append(p.lines(), shared...), errors.Join(err, conflict, ctx.Err())
}

// CheckPermission returns an error if a value differs that neither this process nor
// a Reloader could write.
func (d DropIn) CheckPermission(ctx context.Context) error {
	p, err := d.plan(ctx)
	if p == nil || err != nil || p.reloader != nil {
		return err
	}
	return d.Kernel.permission(d.Settings)
}

// Apply sets the values that differ and reads them back, writes the file unless it
// is right, reloads all files, and reads the values back again. Before each change
// it records the previous values, including those that the kernel changes along
// with them and, for a reload, those that other files set.
//
// Values are set before the file is written, so that the file contains no value
// that the kernel refuses, which would fail at every later boot: if the kernel
// refuses a value that may not fail, the file is not changed. The accepted values
// remain set, and recorded. The file is written without such a trial only if this
// process may not write the values but a Reloader may.
//
// If Apply is killed at any point and run again, the result is the same; with a
// journal, this includes the reload.
func (d DropIn) Apply(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := d.plan(ctx)
	if p == nil || errors.Is(err, errRouter) {
		return err
	}
	if !p.any() {
		return errors.Join(err, p.wish(ctx, d.Kernel))
	}
	r := newRecorder(journal.From(ctx))
	if err := d.Kernel.converge(ctx, p.own, r); err != nil && !p.leftToReloader(err) {
		return p.unwritten(err)
	}
	if err := p.writeFile(ctx, d.Kernel, r); err != nil {
		return err
	}
	err = p.reload(ctx, d.Kernel, r)
	if p.reloader != nil { // it may have overwritten ours with other files' values
		err = errors.Join(err, d.Kernel.converge(ctx, p.own, r))
	}
	if err != nil {
		return err
	}
	if err := p.complete(ctx, journal.From(ctx)); err != nil {
		return err
	}
	p.write, p.changes = false, nil
	return p.wish(ctx, d.Kernel)
}

// Kinds lists the kinds of entries that Apply makes in the context's journal.
func (DropIn) Kinds() []string { return Handler{}.Kinds() }

// Namespaces lists the host namespaces that a plan enters: none unless Kernel is
// the running one.
func (d DropIn) Namespaces() []string { return d.Kernel.namespaces() }

// Places lists the directory of the file and, as [Settings.Places] does, /proc/sys/net.
func (d DropIn) Places() map[string]string {
	if !d.Kernel.isRunning() {
		return nil
	}
	places := map[string]string{d.dir(): ""}
	maps.Copy(places, d.Kernel.places(d.Settings))
	return places
}
