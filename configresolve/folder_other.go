// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package configresolve

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
)

// folder is an open directory of files.
type folder struct {
	*os.File
	root *os.Root
	name string // within root
}

// openFolder opens a directory within root.
func openFolder(root *os.Root, name string) (*folder, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	return &folder{File: f, root: root, name: name}, nil
}

// file is an open file of a folder.
type file struct{ *os.File }

func (f file) sync() error  { return f.Sync() }
func (f file) close() error { return f.Close() }

// create makes a file of mode perm.
func (d *folder) create(name string, perm fs.FileMode) (file, error) {
	f, err := d.root.OpenFile(path.Join(d.name, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return file{}, err
	}
	if err := f.Chmod(perm); err != nil {
		return file{}, errors.Join(err, f.Close())
	}
	return file{f}, nil
}

// fill writes the content.
func (f file) fill(content string) error {
	_, err := f.WriteString(content)
	return err
}

// readlink returns where a symbolic link leads.
func (d *folder) readlink(name string) (string, error) {
	return d.root.Readlink(path.Join(d.name, name))
}

// read returns the content of a regular file and its permission bits.
func (d *folder) read(name string, _ []byte) (content []byte, perm fs.FileMode, err error) {
	f, err := d.root.OpenFile(path.Join(d.name, name), os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := regular(f)
	if err != nil {
		return nil, 0, err
	}
	content, err = io.ReadAll(f)
	return content, info.Mode().Perm(), err
}
