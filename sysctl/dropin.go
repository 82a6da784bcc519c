// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// DropIn is an action that writes a sysctl.d file and has the kernel take its
// values, so that they hold now, and again after the next boot. On hosts with
// systemd, udev applies the file's globs to links that come later; without it
// nobody does.
type DropIn struct {
	// Dir is where the file is. Zero: /etc/sysctl.d.
	Dir string
	// Name is the file's, and ends with .conf. Zero:
	// 99-zzz-override_cilium.conf, the name that Cilium gives it.
	Name string
	// Settings are its lines. Nil: Cilium's, which turn the reverse path
	// filter off on its links (lxc*, cilium_*) and, since the kernel takes the
	// larger of the two, for all.
	Settings []Setting
	// ExistingDir makes it an error that Dir is missing. Otherwise it is made,
	// with mode 0755.
	ExistingDir bool
	// Reload has the values applied. Nil: they are set directly, and no others
	// (as are those that Reload left different). [Systemd] applies all files.
	Reload Reloader
	// Dirs are the directories with files that may override this one, first in
	// rank first. Nil: systemd's, if Dir is one of them; else Dir alone.
	Dirs []string
	// Kernel is where values are read and set. Zero: the calling thread's.
	Kernel Kernel
	// Journal is where the file that stood there and previous values are noted
	// before they change. Nil: nowhere, and Revert returns an error that matches
	// [errors.ErrUnsupported].
	Journal *journal.Journal
}

func (d DropIn) dir() string {
	if d.Dir == "" {
		return "/etc/sysctl.d"
	}
	return filepath.Clean(d.Dir)
}

func (d DropIn) name() string {
	if d.Name == "" {
		return "99-zzz-override_cilium.conf"
	}
	return d.Name
}

func (d DropIn) path() string { return filepath.Join(d.dir(), d.name()) }

func (d DropIn) settings() []Setting {
	if d.Settings != nil {
		return d.Settings
	}
	return []Setting{
		{Key: "net.ipv4.conf.lxc*.rp_filter", Value: "0", IgnoreFailure: true},
		{Key: "net.ipv4.conf.cilium_*.rp_filter", Value: "0", IgnoreFailure: true},
		{Key: "net.ipv4.conf.all.rp_filter", Value: "0"},
	}
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

// Check says what Apply would do: make the directory, write the file, reload,
// and which values that changes. With a Reloader these are also other files'
// values that differ now; each names its file. Where there is nobody to reload,
// a line says that values are set directly, and why.
//
// A file that is right and a value that is not is a change too. Settings that
// have no effect are no changes: see [DropIn.Advise].
func (d DropIn) Check(ctx context.Context) ([]string, error) {
	p, err := d.plan(ctx)
	if p == nil {
		return nil, err
	}
	return p.lines(), errors.Join(err, ctx.Err())
}

// Apply sets the values that differ and reads them back, then writes the file,
// unless it is right, then has all files reloaded, and reads back again.
// Previous values are noted before each change, with those that the kernel
// changes along with them, and those of other files if all are reloaded.
//
// The kernel comes first so that no file holds what it does not take, for
// every later boot to stumble over: if it refuses a value that may not fail,
// the file is left as it was. What it did take stays set, and recorded. Only
// where a Reloader may write values and this process may not is the file
// written untried.
//
// Killed at any point and run again, it comes to the same end; that includes
// the reload if there is a Journal.
func (d DropIn) Apply(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := d.plan(ctx)
	if p == nil || errors.Is(err, errRouter) || !p.any() {
		return err
	}
	r := newRecorder(d.Journal)
	if err := d.Kernel.converge(ctx, p.own, r); err != nil && !p.leftToReloader(err) {
		return p.unwritten(err)
	}
	if err := p.writeFile(ctx, d.Kernel, r); err != nil {
		return err
	}
	err = p.reload(ctx, d.Kernel, r)
	if p.reloader != nil { // it may have set other files' values over ours
		err = errors.Join(err, d.Kernel.converge(ctx, p.own, r))
	}
	if err != nil {
		return err
	}
	return p.complete(ctx, d.Journal)
}

// Revert removes the file, or brings back what stood there, and puts back the
// values that are still as the step left them. What is not stays, and the error
// names it.
func (d DropIn) Revert(ctx context.Context) error { return d.Journal.Undo(ctx, Handler{d.Kernel}) }

// CheckRevert lists what Revert would do, and gives the errors that it would.
func (d DropIn) CheckRevert(ctx context.Context) ([]string, error) {
	return d.Journal.CheckUndo(ctx, Handler{d.Kernel})
}
