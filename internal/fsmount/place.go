// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/mount"
)

// Place is a path where a file system is mounted or wanted.
type Place struct {
	Path   string // as returned by [durable.Resolve]
	FSType string // type of the file system that Path, or its existing part, is on
	Root   string // of a mounted cgroup2, see [mount.Mounter].Stat
	Mount  string // identity of the mount on Path; "" if none is
}

// Look describes the place at path. It takes the same time whatever else is mounted.
func Look(k mount.Mounter, path string) (Place, error) {
	resolved, err := durable.Resolve(path)
	if err != nil {
		return Place{}, err
	}
	p := Place{Path: resolved}
	exists := resolved
	info, err := os.Lstat(exists)
	for errors.Is(err, fs.ErrNotExist) && exists != filepath.Dir(exists) {
		exists = filepath.Dir(exists)
		info, err = os.Lstat(exists)
	}
	if err != nil {
		return Place{}, err
	}
	if !info.IsDir() {
		return Place{}, fmt.Errorf("%s is a %s, not a directory: name another path, or move it away", exists, filemode.Type(info.Mode()))
	}
	p.FSType, p.Root, p.Mount, err = k.Stat(exists)
	if exists != resolved {
		p.Mount = ""
	}
	return p, err
}

// Occupied returns the type of the file system mounted on p, "" if there is none. A mount
// of one directory of a file system, as of a container's volume, counts as an ordinary
// directory.
func (p Place) Occupied(k mount.Mounter) (fstype string, err error) {
	if p.Mount == "" {
		return "", nil
	}
	infos, err := Mounts(k)
	if err != nil {
		return "", err
	}
	on := mountinfo.On(infos, p.Path)
	if len(on) == 0 { // unknown: it has another name, as under chroot
		return p.FSType, nil
	}
	if visible := on[len(on)-1]; visible.Whole() {
		return visible.FSType, nil
	}
	return "", nil
}

// Foreign returns an error that matches foreign if another file system is mounted there, or
// would get a cgroup for each directory that is made for the path.
func (p Place) Foreign(k mount.Mounter, name string, foreign error) error {
	occupant, err := p.Occupied(k)
	if err != nil {
		return fmt.Errorf("%s on %s: %w", name, p.Path, err)
	}
	if p.FSType == "cgroup" {
		occupant = "cgroup v1"
	}
	if occupant == "" {
		return nil
	}
	return fmt.Errorf("%s on %s: %w: %s (unmount it, or name another path)", name, p.Path, foreign, occupant)
}

// Shows reports whether the file system is mounted there; a cgroup2 with the host's root.
func (p Place) Shows(fstype string) bool {
	return p.Mount != "" && p.FSType == fstype && (fstype != cgroup2 || p.Root == "/")
}

// hides names what a mount on path would hide.
func hides(k mount.Mounter, path string) string {
	first, n := "", 0
	for entry, err := range Entries(k, path) {
		if err != nil {
			return "" // it is missing, or mounting will fail for the same reason
		}
		if n++; n == 1 || entry.Name() < first {
			first = entry.Name()
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (hides its present content: %s%s)", first, More(n-1))
}

// More ends a list that n names do not fit into.
func More(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// Entries yields the names in a directory, through k, in no order, and the error that
// stopped it early.
func Entries(k mount.Mounter, path string) iter.Seq2[fs.DirEntry, error] {
	return func(yield func(fs.DirEntry, error) bool) {
		f, err := k.Open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		dir, ok := f.(fs.ReadDirFile)
		if !ok {
			yield(nil, &fs.PathError{Op: "readdir", Path: path, Err: errors.New("not a directory")})
			return
		}
		input.Entries(dir)(yield)
	}
}
