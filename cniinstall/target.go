// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/input"
)

// need is the change that a target needs.
type need uint8

const (
	nothing    need = iota
	attributes      // the content is right, but mode or owner are not
	content
)

// target is a wanted file: a plugin, or the configuration.
type target struct {
	plugin string // its name; empty: the configuration
	path   string
	mode   fs.FileMode
	size   int64
	open   func() (io.ReadCloser, error) // the content, each time from its start

	need   need
	found  string // the wrong attributes, if only these differ
	staged *staged
	entry  journal.Entry // its record
}

// inspect examines the target's path. A symbolic link there differs, and is
// replaced; any other object that is not a file is an error. A nil d means that its
// directory does not exist.
func (t *target) inspect(ctx context.Context, d *durable.Dir) error {
	t.need = content
	if d == nil {
		return nil
	}
	info, err := d.Lstat(t.name())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return hint(err)
	case info.Mode().Type() == fs.ModeSymlink:
		return nil
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is in the way: it is a %s, not a file", t.path, filemode.Type(info.Mode()))
	case info.Size() != t.size:
		return nil
	}
	same, err := t.holds(ctx, d)
	if err != nil || !same {
		return err
	}
	t.need = nothing
	if uid, gid := ownerOf(info); !t.modeFits(info.Mode()) || uid != os.Geteuid() || gid != os.Getegid() {
		t.need = attributes
		t.found = fmt.Sprintf("mode %04o, owner %d:%d", filemode.Unix(info.Mode()), uid, gid)
	}
	return nil
}

// holds reports whether the file at path has the target's content.
func (t *target) holds(ctx context.Context, d *durable.Dir) (bool, error) {
	f, err := d.Open(t.name())
	if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
		return false, nil
	}
	if err != nil {
		return false, hint(err)
	}
	defer f.Close()
	want, err := t.open()
	if err != nil {
		return false, err
	}
	defer want.Close()
	return equal(input.WithContext(ctx, want), f)
}

// modeFits: a plugin may also lack its write bit, as in a read-only image.
func (t *target) modeFits(m fs.FileMode) bool {
	if !hasModes {
		return true
	}
	return filemode.Unix(m) == uint32(t.mode) || t.plugin != "" && filemode.Unix(m) == 0o555
}

func (t *target) name() string { return filepath.Base(t.path) }

func (t *target) change() string {
	if t.need == attributes {
		return fmt.Sprintf("set mode %04o and owner %d:%d of %s (is %s)", t.mode, os.Geteuid(), os.Getegid(), t.path, t.found)
	}
	return "write " + t.path
}
