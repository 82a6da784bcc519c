// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/record"
)

// need is what is to be done about a target.
type need uint8

const (
	nothing    need = iota
	attributes      // the content is right, mode or owner are not
	content
)

// target is one file that shall be: a plugin, or the configuration.
type target struct {
	plugin string // its name; empty: the configuration
	path   string
	mode   fs.FileMode
	size   int64
	open   func() (io.ReadCloser, error) // the content, each time from its start

	left   record.State // how an earlier run left it; zero: not known
	need   need
	found  string // why, where only attributes are wrong
	staged *staged
}

// inspect looks what is at the target's path. A symbolic link there counts as
// something else, and is replaced; what is no file at all is an error.
func (t *target) inspect(ctx context.Context) error {
	t.need = content
	info, err := os.Lstat(t.path)
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
	same, err := t.holds(ctx)
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
func (t *target) holds(ctx context.Context) (bool, error) {
	f, err := openThere(t.path)
	if err != nil {
		return false, hint(err)
	}
	defer f.Close()
	if same, err := t.isStillIn(ctx, f); err != nil || same {
		return same, err
	}
	return t.isIn(ctx, f)
}

// isStillIn reports whether f is as an earlier run left it, with what is the
// target's content still. Only that content is read. False says nothing.
func (t *target) isStillIn(ctx context.Context, f *os.File) (bool, error) {
	if t.left.Quick == "" {
		return false, nil
	}
	if seen, ok := see(f); !ok || seen.String() != t.left.Seen {
		return false, nil
	}
	want, err := t.open()
	if err != nil {
		return false, err
	}
	defer want.Close()
	quick, err := quickOf(ctx, want, t.size)
	return quick == t.left.Quick, err
}

// isIn compares the target's content with that of f.
func (t *target) isIn(ctx context.Context, f *os.File) (bool, error) {
	want, err := t.open()
	if err != nil {
		return false, err
	}
	defer want.Close()
	if file, ok := want.(*os.File); ok {
		return equalFiles(ctx, file, f)
	}
	return equal(ctx, want, io.NewSectionReader(f, 0, math.MaxInt64), make([]byte, 2*piece))
}

// modeFits: a plugin may also lack its write bit, as in a read-only image.
func (t *target) modeFits(m fs.FileMode) bool {
	if !hasModes {
		return true
	}
	return filemode.Unix(m) == uint32(t.mode) || t.plugin != "" && filemode.Unix(m) == 0o555
}

// after is how the target shall be left, for the record.
func (t *target) after(sum string) record.State {
	return record.State{
		Type: "file", Mode: uint32(t.mode), UID: os.Geteuid(), GID: os.Getegid(), Size: t.size, SHA256: sum,
	}
}

func (t *target) change() string {
	if t.need == attributes {
		return fmt.Sprintf("set mode %04o and owner %d:%d of %s (is %s)", t.mode, os.Geteuid(), os.Getegid(), t.path, t.found)
	}
	return "write " + t.path
}
