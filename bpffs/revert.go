// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/fsmount"
)

// maxNamed is how many pins an error names.
const maxNamed = 10

// Revert unmounts what Apply mounted, as the record in StateDir has it,
// whatever Path is now, and removes the directories that Apply made if they
// are empty.
//
// A mount is left where it is if it holds pins, since they would be lost with
// it, or is in use: the error names them, and the record stays for another
// time. One that is not the recorded one any more is left, reported once and
// forgotten. Nothing recorded: success. No StateDir: an error that matches
// errors.ErrUnsupported.
func (m Mount) Revert(ctx context.Context) error { return m.undoer().Revert(ctx) }

// CheckRevert lists what Revert would do. Its errors are those that Revert
// would return.
func (m Mount) CheckRevert(ctx context.Context) (changes []string, err error) {
	return m.undoer().Check(ctx)
}

func (m Mount) undoer() fsmount.Undoer {
	return fsmount.Undoer{
		Kernel: fsmount.Or(m.Kernel), StateDir: m.StateDir, Name: book, FSType: fstype,
		Keep: holdsPins,
	}
}

// holdsPins is an error if the bpffs on path holds more than the two files
// that the kernel puts into each.
func holdsPins(k fsmount.Kernel, path string) error {
	var pins []string
	if err := walk(k, path, "", &pins); err != nil {
		return fmt.Errorf("unmount bpf from %s: %w", path, err)
	}
	if len(pins) == 0 {
		return nil
	}
	more := ""
	if n := len(pins) - maxNamed; n > 0 {
		pins, more = pins[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("bpffs on %s stays: it holds pins, which would be lost: %s%s (remove them first)",
		path, strings.Join(pins, ", "), more)
}

// walk lists what is pinned below top/dir; an empty directory counts.
func walk(k fsmount.Kernel, top, dir string, pins *[]string) error {
	entries, err := fsmount.ReadDir(k, filepath.Join(top, dir))
	if err != nil {
		return err
	}
	if dir != "" && len(entries) == 0 {
		*pins = append(*pins, dir+"/")
	}
	for _, e := range entries {
		name := filepath.ToSlash(filepath.Join(dir, e.Name()))
		switch {
		case name == "progs.debug" || name == "maps.debug":
		case e.IsDir():
			if err := walk(k, top, name, pins); err != nil {
				return err
			}
		default:
			*pins = append(*pins, name)
		}
	}
	return nil
}
