// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Files reaches the kernel's values. Names are slash-separated paths below
// /proc/sys, as in [fs.FS].
//
// An implementation may also have a method Routers() ([]string, error) that
// names the links with an IPv6 default route learnt from router
// advertisements; without it no such link is known.
type Files interface {
	ReadFile(name string) ([]byte, error)
	// WriteFile writes value to a file that exists, in one write.
	WriteFile(name string, value []byte) error
	ReadDir(name string) ([]string, error)
	// Writable returns nil if the file can be opened for writing, and the
	// caller has what a write takes besides. It changes nothing.
	Writable(name string) error
}

type routerLister interface{ Routers() ([]string, error) }

// Kernel is where values are read and set. The zero value is the kernel of
// the machine, and for keys below net the network namespace of the calling
// thread.
type Kernel struct {
	// Root is the directory that shows the values. Zero: /proc/sys. In a
	// container whose own is read-only, the host's (/hostproc/sys) may not be;
	// its net still is the calling thread's.
	Root string
	// Files is used instead of what is below Root, if not nil.
	Files Files
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

// Get returns a value as the kernel prints it, without the line break at its
// end. That the key does not exist matches [fs.ErrNotExist].
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
		return "", fmt.Errorf("read %s: %w", keyOf(path), err)
	}
	return value, nil
}

// look is read with an error that does not name the key.
func (k Kernel) look(path string) (string, error) {
	raw, err := k.files().ReadFile(path)
	if err != nil {
		return "", hint(keyOf(path), pathless(err))
	}
	return strings.TrimRight(string(raw), "\n"), nil
}

// Diff says which values are not as settings want them, globs expanded, in
// the order in which they would be set. It changes nothing and needs no
// capability; what cannot be told is joined in the error, and the rest is
// there all the same.
//
// A setting that may fail is not among them if it is known beforehand that it
// does: its key cannot be opened for writing, or has its value until the next
// boot. One of which only a write shows it (the kernel does not take the
// value) differs each time. To turn IPv6 forwarding on takes accept_ra = 2 first, on each link
// that has its default route from a router: that is among them too.
func (k Kernel) Diff(settings ...Setting) ([]Change, error) {
	return k.diff(assignments(settings))
}

func (k Kernel) diff(as []Assignment) ([]Change, error) {
	targets, err := expand(k.files(), as)
	errs := []error{err}
	var changes []Change
	for _, t := range targets {
		c, err := k.differs(t)
		if err != nil {
			errs = append(errs, err)
		} else if c != nil {
			changes = append(changes, *c)
		}
	}
	changes, err = k.guardRouters(changes)
	return changes, errors.Join(append(errs, err)...)
}

// differs returns nil if t is as it should be, or may stay as it is.
func (k Kernel) differs(t target) (*Change, error) {
	old, err := k.look(t.path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && (t.IgnoreFailure || missing && (t.IfExists || t.byGlob)):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("set %s = %s: %w", t.Key, oneLine(t.Value), err)
	case sameValue(old, t.Value):
		return nil, nil
	case t.IgnoreFailure && (forGood(t.path, old) || k.files().Writable(t.path) != nil):
		return nil, nil
	}
	return &Change{Key: t.Key, Old: old, New: t.Value, ignore: t.IgnoreFailure}, nil
}
