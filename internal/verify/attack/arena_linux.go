// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// secret is content that only root may read.
const secret = "SECRET of root's\n"

// arena is where the attempts take place: root/pub is the attacker's, root/victim and
// root/state are root's. The content of victim is made once.
type arena struct {
	root   string
	mounts bool // something is mounted in it: searching for mounts takes time
	ctx    context.Context
	built  bool    // victim exists, unchanged
	guards []guard // directories of root's in which nothing may change
	before string  // their content before
	undo   func(context.Context) error
	err    error // the first error while building
}

// guard is an open directory.
type guard struct {
	name string
	fd   int
	dev  uint64
}

func (a *arena) path(name string) string { return filepath.Join(a.root, name) }

// do keeps the first error.
func (a *arena) do(err error) {
	if a.err == nil {
		a.err = err
	}
}

// reset makes the arena anew, except for unchanged parts.
func (a *arena) reset() {
	a.do(a.unmount())
	a.drop("pub/roots")
	a.remove("pub")
	a.remove("state")
	if !a.built {
		a.drop("victim")
		a.remove("victim")
	}
	a.undo = nil
	a.dir("pub", 0o755, nobody)
	a.dir("state", 0o700, 0)
	a.dir("victim", 0o700, 0)
	a.file("victim/secret", secret, 0o600, 0)
}

// remove removes nothing if something may be mounted there.
func (a *arena) remove(name string) {
	if a.err == nil {
		a.do(os.RemoveAll(a.path(name)))
	}
}

// missing reports whether name must be made: the content of victim is made once.
func (a *arena) missing(name string) bool {
	return a.err == nil && (!a.built || name != "victim" && !strings.HasPrefix(name, "victim/"))
}

// outside calls f, which makes the content of victim.
func (a *arena) outside(f func() error) {
	if a.missing("victim") {
		a.do(f())
	}
}

// dir makes a directory. A directory of root's in the attacker's is guarded.
func (a *arena) dir(name string, mode fs.FileMode, owner int) {
	if !a.missing(name) {
		return
	}
	a.do(os.Mkdir(a.path(name), 0o700))
	a.own(name, mode, 0o700, owner)
	if name == "victim" || name == "pub/roots" {
		a.guard(name)
	}
}

func (a *arena) file(name, content string, mode fs.FileMode, owner int) {
	if !a.missing(name) {
		return
	}
	a.do(os.WriteFile(a.path(name), []byte(content), 0o600))
	a.own(name, mode, 0o600, owner)
}

func (a *arena) own(name string, mode, has fs.FileMode, owner int) {
	if mode != has {
		a.do(os.Chmod(a.path(name), mode))
	}
	if owner != 0 {
		a.do(os.Lchown(a.path(name), owner, owner))
	}
}

func (a *arena) guard(name string) {
	fd, err := unix.Open(a.path(name), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	a.do(err)
	var st unix.Stat_t
	a.do(unix.Fstat(fd, &st))
	a.guards = append(a.guards, guard{name, fd, st.Dev})
}

func (a *arena) drop(name string) {
	a.guards = slices.DeleteFunc(a.guards, func(g guard) bool {
		if g.name == name {
			a.do(unix.Close(g.fd))
		}
		return g.name == name
	})
}

// link makes a link of the attacker's.
func (a *arena) link(name, target string) {
	a.do(os.Symlink(target, a.path(name)))
	a.do(os.Lchown(a.path(name), nobody, nobody))
}

// ready records the state before an attempt.
func (a *arena) ready() error {
	if a.err == nil && (!a.built || a.mounts || len(a.guards) > 1) {
		var err error
		a.before, err = a.guarded()
		a.do(err)
	}
	a.built = a.err == nil
	return a.err
}

// harm describes the attacker's success; "" if none.
func (a *arena) harm() (string, error) {
	after, err := a.guarded()
	if err = errors.Join(err, a.unmount()); err != nil {
		return "", err
	}
	if after != a.before {
		a.built = false
		return "outside it was\n" + a.before + "and is\n" + after, nil
	}
	return a.leaked()
}

// guarded describes the mounts outside the attacker's directory, and the content of the
// guarded directories.
func (a *arena) guarded() (string, error) {
	var b strings.Builder
	points, err := a.mounted()
	if err != nil {
		return "", err
	}
	for _, p := range points {
		if !mountinfo.Below(p, a.path("pub")) {
			fmt.Fprintf(&b, "mounted on %s\n", p)
		}
	}
	for _, g := range a.guards {
		if err := describe(&b, fmt.Sprintf("/proc/self/fd/%d/.", g.fd), g.name, g.dev); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// describe does not enter mounts.
func describe(b *strings.Builder, path, name string, dev uint64) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	st := info.Sys().(*syscall.Stat_t)
	fmt.Fprintf(b, "%s %s %d:%d", name, info.Mode(), st.Uid, st.Gid)
	switch {
	case st.Dev != dev: // may belong to the kernel: the content does not matter
		names, err := os.ReadDir(path)
		fmt.Fprintf(b, " of another file system, with %v\n", names)
		return err
	case info.Mode().IsRegular():
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, " %d links %.20q of %d bytes\n", st.Nlink, content, len(content))
	case info.IsDir():
		b.WriteByte('\n')
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := describe(b, path+"/"+e.Name(), name+"/"+e.Name(), dev); err != nil {
				return err
			}
		}
	default:
		target, err := os.Readlink(path)
		fmt.Fprintf(b, " to %s\n", target)
		return err
	}
	return nil
}

// leaked names a file that holds the secret, and that the attacker can read or that is
// part of a record.
func (a *arena) leaked() (where string, err error) {
	inJSON := base64.StdEncoding.EncodeToString([]byte(secret))[:len(secret)]
	for _, dir := range []string{"pub", "state"} {
		err := filepath.WalkDir(a.path(dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err != nil || dir == "pub" && !readable(info) {
				return err
			}
			content, err := os.ReadFile(path)
			if bytes.Contains(content, []byte(secret)) || bytes.Contains(content, []byte(inJSON)) {
				where = strings.TrimPrefix(path, a.root) + " holds the secret"
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return where, nil
}

func readable(info fs.FileInfo) bool {
	return info.Mode()&0o004 != 0 || info.Sys().(*syscall.Stat_t).Uid == nobody
}

// mounted lists the mounts in the arena.
func (a *arena) mounted() (points []string, err error) {
	if !a.mounts {
		return nil, nil
	}
	all, err := mountinfo.Read()
	for _, m := range all {
		if m.Point != a.root && mountinfo.Below(m.Point, a.root) {
			points = append(points, m.Point)
		}
	}
	return points, err
}

// unmount removes all mounts in the arena, so that their content is never removed.
func (a *arena) unmount() error {
	points, err := a.mounted()
	for _, p := range slices.Backward(points) {
		err = errors.Join(err, unix.Unmount(p, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW))
	}
	if len(points) == 0 || err != nil {
		return err
	}
	if points, err = a.mounted(); len(points) > 0 {
		return fmt.Errorf("still mounted: %s", points)
	}
	return err
}
