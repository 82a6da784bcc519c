// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"errors"
	"io"
	"io/fs"
)

// Union returns a source for [Install.Plugins] that has the plugins of all sources,
// such as the two folders of Cilium's image. If several have a plugin, the first
// counts.
func Union(sources ...fs.FS) fs.FS { return union(sources) }

type union []fs.FS

func (u union) Open(name string) (fs.File, error) {
	if name == "." {
		return u.openDir()
	}
	return firstOf(u, name, fs.FS.Open)
}

func (u union) Stat(name string) (fs.FileInfo, error) {
	return firstOf(u, name, fs.Stat)
}

// firstOf returns the answer of the first source that has the file.
func firstOf[T any](sources []fs.FS, name string, ask func(fs.FS, string) (T, error)) (answer T, err error) {
	err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	for _, source := range sources {
		if answer, err = ask(source, name); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return answer, err
}

func (u union) openDir() (fs.File, error) {
	d := &unionDir{}
	for _, source := range u {
		f, err := source.Open(".")
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.dirs = append(d.dirs, f)
	}
	if len(d.dirs) == 0 {
		return nil, &fs.PathError{Op: "open", Path: ".", Err: fs.ErrNotExist}
	}
	return d, nil
}

// unionDir lists its folders one after the other: a name may come twice.
type unionDir struct {
	dirs []fs.File
	read int // so many of them
}

func (d *unionDir) ReadDir(n int) (all []fs.DirEntry, err error) {
	for ; d.read < len(d.dirs); d.read++ {
		dir, ok := d.dirs[d.read].(fs.ReadDirFile)
		if !ok {
			return all, &fs.PathError{Op: "readdir", Path: ".", Err: errors.ErrUnsupported}
		}
		entries, err := dir.ReadDir(n)
		all = append(all, entries...)
		if n > 0 && len(entries) > 0 {
			return all, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return all, err
		}
	}
	if n > 0 {
		return nil, io.EOF
	}
	return all, nil
}

func (d *unionDir) Stat() (fs.FileInfo, error) { return d.dirs[0].Stat() }

func (d *unionDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: ".", Err: errors.New("is a directory")}
}

func (d *unionDir) Close() error {
	var errs []error
	for _, dir := range d.dirs {
		errs = append(errs, dir.Close())
	}
	return errors.Join(errs...)
}
