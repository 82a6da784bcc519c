// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import "context"

var ErrNoSystemd, ErrReadOnlyDirectory = errNoSystemd, errReadOnlyDirectory

// Effective returns the settings that systemd reads from dirs, or from its own
// directories.
func Effective(dirs ...string) ([]target, error) {
	if len(dirs) == 0 {
		dirs = systemdDirs()
	}
	return effective(context.Background(), dirs, "", nil)
}

// Changes lists the values that differ from settings.
func (k Kernel) Changes(settings ...Setting) ([]target, error) {
	targets, err := expand(k.files(), linesOf("", settings))
	return k.changes(inOrder(targets), thisProcess), err
}

// KernelAt has its values in the directory root.
func KernelAt(root string) Kernel { return Kernel{Files: procSys(root)} }

// Line is the line of a sysctl.d file.
func (s Setting) Line() string { return s.line() }

// Reading returns d with the directories that are read at boot.
func (d DropIn) Reading(dirs ...string) DropIn {
	d.read = dirs
	return d
}

type Reloader = reloader

// Systemd is a service of systemd, usually systemd-sysctl.service.
type Systemd struct{ instead Reloader }

// Instead makes a Systemd that is r.
func Instead(r Reloader) *Systemd { return &Systemd{r} }

// SystemdAt has its sockets below root.
func SystemdAt(root, unit string) *Systemd { return &Systemd{service{unit, root}} }

// Reloads returns d with s as what reloads.
func (d DropIn) Reloads(s *Systemd) DropIn {
	d.Reload, d.instead = "systemd-sysctl.service", s.instead
	return d
}

func (s *Systemd) reloader() Reloader { return DropIn{}.Reloads(s).reloader() }

func (s *Systemd) Reload(ctx context.Context) error { return s.reloader().Reload(ctx) }

func (s *Systemd) Reloading(ctx context.Context) (string, error) { return s.reloader().Reloading(ctx) }
