// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// Naive versions, which check first and then trust that nothing has changed.

var errRefused = errors.New("something else is there")

// expect checks the type of the object at path.
func expect(path string, typ fs.FileMode) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() != typ {
		err = errRefused
	}
	return err
}

// naively works on name, after checking that it is a file.
func naively(name string, work func(path string) error) func(*arena) error {
	return func(a *arena) error {
		if err := expect(a.path(name), 0); err != nil {
			return err
		}
		return work(a.path(name))
	}
}

// naivelyBelow works on pub/p/x, after checking that pub/p is a directory.
func naivelyBelow(work func(path string) error) func(*arena) error {
	return func(a *arena) error {
		if err := expect(a.path("pub/p"), fs.ModeDir); err != nil {
			return err
		}
		return work(a.path("pub/p/x"))
	}
}

func overwrite(path string) error { return os.WriteFile(path, []byte("naive"), 0o644) }

func makeNew(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func makeDir(path string) error { return os.Mkdir(path, 0o755) }

func makeLink(path string) error { return os.Symlink("target", path) }

// makeDirOfMode makes pub/x.
func makeDirOfMode(a *arena) error {
	if err := os.Mkdir(a.path("pub/x"), 0o755); err != nil {
		return err
	}
	return os.Chmod(a.path("pub/x"), 0o755)
}

// leftByUs checks that a file has the content that was left.
func leftByUs(path string) error {
	content, err := os.ReadFile(path)
	if err == nil && string(content) != left {
		err = errRefused
	}
	return err
}

// undoWrite restores the earlier content, if the file has the content that was left.
func undoWrite(path string) error {
	if err := leftByUs(path); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(earlier), 0o644)
}

// undoMake removes the file that was left.
func undoMake(path string) error {
	if err := leftByUs(path); err != nil {
		return err
	}
	return os.Remove(path)
}

// undoMkdir removes the directory that was left.
func undoMkdir(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode() != fs.ModeDir|0o755 {
		err = errRefused
	}
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// keep reads pub/x for the record.
func keep(a *arena) error {
	return naively("pub/x", func(path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(a.path("state/kept"), content, 0o600)
	})(a)
}

func lockFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	return f.Truncate(0)
}

// removeTree removes path and its content.
func removeTree(path string) error {
	var all []string
	err := filepath.WalkDir(path, func(name string, _ fs.DirEntry, err error) error {
		all = append(all, name)
		return err
	})
	for _, name := range slices.Backward(all) {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

func mountOn(path string) error {
	if err := expect(path, fs.ModeDir); err != nil {
		return err
	}
	return unix.Mount("naive", path, "tmpfs", 0, "")
}

// unmountOurs unmounts path, after checking that it is the attacker's directory.
func unmountOurs(path string) error {
	all, err := mountinfo.Read()
	if err == nil && len(mountinfo.On(all, path)) == 0 {
		err = syscall.EINVAL
	}
	if err != nil {
		return err
	}
	return unix.Unmount(path, 0)
}

// removeTreeFollowing removes path and its content, by paths.
func removeTreeFollowing(path string) error {
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		if e.IsDir() {
			err = errors.Join(err, removeTreeFollowing(name))
			continue
		}
		err = errors.Join(err, os.Remove(name))
	}
	return errors.Join(err, os.Remove(path))
}

func removePins(root string) error { return os.Remove(root + "/agent") }
