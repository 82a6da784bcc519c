// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Files gives access to the kernel's values. Names are slash-separated paths below
// /proc/sys, as in [fs.FS].
//
// An implementation may also have a method Routers() ([]string, error) that names
// the links with an IPv6 default route learnt from router advertisements. Without
// it, none are assumed.
type Files interface {
	ReadFile(name string) ([]byte, error)
	// WriteFile writes value to an existing file, in one write.
	WriteFile(name string, value []byte) error
	ReadDir(name string) ([]string, error)
	// Writable returns nil if the file can be opened for writing, and the caller
	// has the capability that the write itself needs. It changes nothing.
	Writable(name string) error
}

type routerLister interface{ Routers() ([]string, error) }

// Kernel is a kernel whose values are read and set. The zero value is the machine's
// kernel and, for keys below net, the network namespace of the calling thread.
type Kernel struct {
	// Root is the directory that shows the values. If empty, it is /proc/sys. In a
	// container whose /proc/sys is read-only, the host's (/hostproc/sys) may be
	// writable; keys below net there still belong to the calling thread's network
	// namespace. If Root is set, a plan enters no namespace.
	Root string
	// Files, if not nil, is used instead of Root.
	Files Files
}

// isRunning reports whether k is the running kernel, in the calling thread's namespaces.
func (k Kernel) isRunning() bool { return k.Root == "" && k.Files == nil }

func (k Kernel) namespaces() []string {
	if !k.isRunning() {
		return nil
	}
	return []string{"mnt", "net"}
}

// places marks settings as values of a network namespace, which may be a
// container's; it is empty unless k is the running kernel.
func (k Kernel) places(settings []Setting) map[string]string {
	ofNet := func(s Setting) bool {
		path, err := s.Key.path()
		first, _, _ := strings.Cut(path, "/")
		return err == nil && !s.Exclude && (first == "net" || isGlob(first))
	}
	if !k.isRunning() || !slices.ContainsFunc(settings, ofNet) {
		return nil
	}
	return map[string]string{"/proc/sys/net": ""}
}

func (k Kernel) files() Files {
	switch {
	case k.Files != nil:
		return k.Files
	case k.Root != "":
		return procSys(k.Root)
	}
	return procSys("/proc/sys")
}

// Get returns a value as the kernel prints it, without the line break at its end.
// If the key does not exist, the error matches [fs.ErrNotExist].
func (k Kernel) Get(key Key) (string, error) {
	path, err := key.path()
	if err == nil && isGlob(path) {
		err = fmt.Errorf("%w: %q is a pattern", errKey, key)
	}
	if err != nil {
		return "", err
	}
	return k.read(path)
}

func (k Kernel) read(path string) (string, error) {
	value, err := k.look(path)
	if err != nil {
		return "", &Error{Op: opRead, Key: keyOf(path), Err: err}
	}
	return value, nil
}

// look is like read, but its error does not name the key.
func (k Kernel) look(path string) (string, error) {
	raw, err := k.files().ReadFile(path)
	if err != nil {
		return "", hint(keyOf(path), pathless(err))
	}
	return strings.TrimRight(string(raw), "\n"), nil
}

// Diff lists the values that differ from settings, with globs expanded, in the
// order in which they would be set. It changes nothing and needs no capability. If
// some values cannot be read, their errors are joined, and the other values are
// still listed.
//
// A setting that may fail is left out if it is certain to fail: its key cannot be
// opened for writing, or its value cannot change until the next boot. If only a
// write would reveal the failure (the kernel does not accept the value), it is
// listed each time. Before IPv6 forwarding is turned on, each link with a default
// route from a router needs accept_ra = 2: that is listed too.
func (k Kernel) Diff(settings ...Setting) ([]Change, error) {
	return k.diff(assignments(settings))
}

func (k Kernel) diff(as []assignment) ([]Change, error) { return k.diffBy(as, thisProcess) }

// writer is the process that will write the values.
type writer bool

const (
	thisProcess writer = false
	aReloader   writer = true // it may write values that this process may not
)

func (k Kernel) diffBy(as []assignment, w writer) ([]Change, error) {
	targets, err := expand(k.files(), as)
	errs := []error{err}
	var changes []Change
	for _, t := range targets {
		c, err := k.differs(t, w)
		if err != nil {
			errs = append(errs, err)
		} else if c != nil {
			changes = append(changes, *c)
		}
	}
	changes, err = k.guardRouters(changes)
	return changes, errors.Join(append(errs, err)...)
}

// differs returns nil if t has the wanted value, or may remain different.
func (k Kernel) differs(t target, w writer) (*Change, error) {
	old, err := k.look(t.path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && (t.IgnoreFailure || missing && (t.IfExists || t.byGlob)):
		return nil, nil
	case err != nil:
		return nil, &Error{opSet, t.Key, t.Value, err}
	case sameValue(old, t.Value):
		return nil, nil
	case t.IgnoreFailure && (forGood(t.path, old) || !k.writable(t.path, w)):
		return nil, nil
	}
	return &Change{Key: t.Key, Old: old, New: t.Value, ignore: t.IgnoreFailure}, nil
}

func (k Kernel) writable(path string, w writer) bool {
	err := k.files().Writable(path)
	return err == nil || w == aReloader && denied(err)
}

// permission returns an error if one of the values that differ could not be written.
func (k Kernel) permission(settings []Setting) error {
	changes, err := k.Diff(settings...)
	if err != nil {
		return err
	}
	for _, c := range changes {
		path, err := c.Key.path()
		if err == nil {
			err = k.files().Writable(path)
		}
		if err != nil && !c.ignore {
			return &Error{opSet, c.Key, c.New, hint(c.Key, pathless(err))}
		}
	}
	return nil
}
