// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// DropIn wants kernel values and a sysctl.d file that has them, so that they apply both now
// and after the next boot. On hosts with systemd, udev
// applies the file's globs to links that appear later, but not to renamed links;
// other hosts do neither. [Watch] signals when to apply it again. [Cilium] is the
// drop-in of Cilium's agent.
type DropIn struct {
	// Dir is the file's directory. If empty, it is /etc/sysctl.d.
	Dir string
	// ExistingDir makes a missing Dir an error. Otherwise Dir is made, with mode
	// 0755.
	ExistingDir bool
	// Name is the file's name, which must end with .conf. It is required.
	Name string
	// Settings are the file's lines. At least one is required.
	Settings []Setting
	// Reload is the unit of systemd that applies all sysctl.d files, usually
	// systemd-sysctl.service. It is restarted over D-Bus after the file is written, and
	// waited for; a job that does not end with "done" is an error. If it is empty, or if
	// there is no systemd, only this file's values are set, directly; so they are for a
	// process in a unit that the service is ordered after, which would wait for itself: the
	// service applies the files afterwards.
	//
	// The service applies every file, not only ours, and so overwrites values that an
	// administrator has set at run time. It acts on the machine's values and on those of
	// systemd's own network namespace, whatever the calling thread's is.
	//
	// The calling thread connects to /run/systemd/private or /run/dbus/system_bus_socket,
	// tried in this order, in its mount namespace. Each connection has its own goroutines,
	// which only read from and write to it, and end with the call. A reload needs root.
	Reload string
	// Kernel is the kernel whose values are read and set. The zero value is the
	// calling thread's.
	Kernel Kernel

	read    []string // the directories that are read at boot; nil: see dirs
	instead reloader // nil: the unit
}

func (d DropIn) dir() string {
	if d.Dir == "" {
		return "/etc/sysctl.d"
	}
	return filepath.Clean(d.Dir)
}

func (d DropIn) path() string { return filepath.Join(d.dir(), d.Name) }

// Wants lists the values, the directory if it is missing, and the file, which needs them:
// so the kernel has taken each value before a file sets it at every boot, and the file goes
// before the values come back. With Reload, the values that only systemd may write come last,
// and Check also lists what it will change because of other files, which it names.
//
// Besides the errors of [Settings.Wants], it is one if the fields make no file. That no
// file can be made in the directory, which has the code sysctl.directory-read-only, is one
// when Check looks at it; Apply sets the values all the same.
func (d DropIn) Wants(ctx context.Context) (ledger.Wants, error) {
	content, err := d.content(ctx)
	if err != nil {
		return ledger.Wants{}, err
	}
	file := ledger.FileWant(d.path(), 0o644, keepMark(ctx, d.path(), content))
	all, _ := effective(ctx, d.dirs(), d.path(), content) // [DropIn.Advise] reports unreadable files
	own, err := expand(d.Kernel.files(), slices.Concat(keepOff(all, d.path()), d.lines()))
	r, reloadErr := d.reloading(ctx, file, own)
	beyond := d.beyond(own, all, r)
	list, late, routeErr := wanting{d.Kernel, file.ID(), r}.wants(inOrder(own), beyond)
	var dirs []ledger.Want
	var dirErr error
	if !d.ExistingDir {
		dirs, dirErr = ledger.DirWants(d.dir(), 0o755)
	}
	file.Kind = d.fileKind(file, r, beyond)
	for i := range dirs {
		dirs[i].Needs = named(list)
	}
	list = slices.Concat(list, dirs, []ledger.Want{file}, late)
	return ledger.Wants{List: list, Kinds: d.Kinds()}, errors.Join(err, reloadErr, routeErr, dirErr)
}

// named lists the IDs of wants that no pattern has made: of links there may be thousands.
func named(list []ledger.Want) (ids []string) {
	for _, w := range list {
		if !w.Unnamed {
			ids = append(ids, w.ID())
		}
	}
	return ids
}

// Check lists the changes that Apply would make.
func (d DropIn) Check(ctx context.Context) ([]string, error) { return ledger.Check(ctx, d) }

// Apply makes the changes, and reads the values back. It records nothing.
func (d DropIn) Apply(ctx context.Context) error { return ledger.Apply(ctx, d) }

// Kinds lists the kinds of what d wants, for a program that undoes it. Those of the zero
// value are of the host's own directory and kernel.
func (d DropIn) Kinds() []*ledger.Kind {
	return []*ledger.Kind{(&values{Kernel: d.Kernel}).kind(), d.fileKind(ledger.Want{}, nil, nil), ledger.Dir()}
}

// content returns the file's wanted content, or an error if the settings cannot be
// written as a file.
func (d DropIn) content(ctx context.Context) ([]byte, error) {
	switch {
	case d.Name == "":
		return nil, errors.New("drop-in: no name given")
	case len(d.Settings) == 0:
		return nil, fmt.Errorf("drop-in %q: no settings given", d.Name)
	case d.Name != filepath.Base(d.Name) || filepath.Ext(d.Name) != ".conf" || d.Name[0] == '.':
		return nil, fmt.Errorf("drop-in name %q is not a file name ending with .conf", d.Name)
	}
	return encode(header(ledger.From(ctx).Mark()), d.Settings)
}

// dirs are the directories with files that may override this one, highest priority first:
// those that systemd reads if ours is one of them.
func (d DropIn) dirs() []string {
	switch {
	case d.read != nil:
		return d.read
	case slices.Contains(systemdDirs(), d.dir()):
		return systemdDirs()
	}
	return []string{d.dir()}
}

func (d DropIn) lines() []target { return linesOf(d.path(), d.Settings) }

// keepOff turns the explicit keys of files other than path into exclusions: our
// globs do not set them, as systemd's would not.
func keepOff(as []target, path string) []target {
	var off []target
	for _, a := range as {
		if a.File != path && !isGlob(a.path) {
			off = append(off, target{Setting: Setting{Key: a.Key, Exclude: true}, File: a.File, Line: a.Line})
		}
	}
	return off
}
