// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/input"
)

// asideRef identifies a configuration that was set aside.
type asideRef struct {
	fileRef
	dir  inode  // that holds it
	from string // its name
	name string // that it gets back, in the same directory
}

// aside is a name by which a configuration was set aside: another one, a
// suffix, and a number where that was taken already.
type aside struct {
	dir    string
	base   string
	name   string // that it had
	number int    // -1: none
	suffix string
}

func (a aside) path() string { return filepath.Join(a.dir, a.base) }

func (a aside) original() string { return filepath.Join(a.dir, a.name) }

// parseAside reads a name that is NAME SUFFIX, or NAME SUFFIX.N.
func parseAside(base, suffix string) (a aside, ok bool) {
	a = aside{base: base, number: -1, suffix: suffix}
	if a.name, ok = strings.CutSuffix(base, suffix); ok {
		return a, a.name != ""
	}
	rest, number, _ := cutLast(base, ".")
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != number {
		return a, false
	}
	a.number = int(n)
	a.name, ok = strings.CutSuffix(rest, suffix)
	return a, ok && a.name != ""
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// asides returns the names by which something was set aside: by directory and
// name that they had, the highest number, which is the youngest, first.
func (o *owned) asides(ctx context.Context) ([]aside, error) {
	var out []aside
	var errs errorSet
	for _, pattern := range o.SetAside {
		dir, suffix := filepath.Dir(pattern), strings.TrimPrefix(filepath.Base(pattern), "*")
		var found []aside
		names, err := input.ReadNames(ctx, dir, func(name string) bool {
			_, ok := parseAside(name, suffix)
			return ok
		})
		errs.add(notThere(err))
		for _, name := range names {
			a, _ := parseAside(name, suffix)
			a.dir = dir
			found = append(found, a)
		}
		slices.SortStableFunc(found, func(a, b aside) int {
			return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(b.number, a.number))
		})
		out = append(out, found...)
	}
	return out, errs.join()
}

// findAside lists configurations of others that were set aside. Of several of
// one name the youngest gets it.
func findAside(ctx context.Context, s *session) error {
	var errs errorSet
	asides, err := s.own.asides(ctx)
	errs.add(err)
	for _, a := range asides {
		// What is the agent's is removed as a file.
		if !s.own.ownsFile(a.original()) && !s.own.ownsFile(a.path()) {
			errs.add(s.foundAside(a))
		}
	}
	return errs.join()
}

func (s *session) foundAside(a aside) error {
	t, err := openTree(a.path())
	if t == nil {
		return err
	}
	defer t.close()
	item := Item{
		Kind: kindAside, Object: a.path(), Detail: "gets its name back: " + a.name,
		ref: asideRef{fileRef{a.path(), t.id}, t.parentID, t.name, a.name},
	}
	gets := place{t.parentID, a.name}
	_, twice := parseAside(a.name, a.suffix)
	switch {
	case s.kept.holds(t.path), s.kept.holds(filepath.Join(filepath.Dir(t.path), a.name)), s.again(t):
	case t.mount:
		s.leaveAs(item, "something is mounted on it")
	case t.dir:
		s.leaveAs(item, "it is a directory")
	case twice:
		s.leaveAs(item, "it was set aside twice")
	case exists(a.original()):
		s.leaveAs(item, a.name+" is there")
	case s.given[gets] != "":
		s.leaveAs(item, s.given[gets]+", set aside after it, gets the name "+a.name)
	default:
		s.given[gets] = a.base
		s.found(item)
	}
	return nil
}

func (o *owned) ownsFile(path string) bool {
	path = resolveParents(path)
	for _, file := range o.Files {
		if resolveParents(file) == path {
			return true
		}
	}
	return false
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// restoreAside gives a configuration its name back, and never to another file's
// loss. Where it cannot, and nothing has the name, files beside it stay.
func restoreAside(_ context.Context, s *session, item Item) error {
	ref, ok := item.ref.(asideRef)
	if !ok {
		return fmt.Errorf("identity of type %T", item.ref)
	}
	err := ref.restore()
	if err != nil && !errors.Is(err, unix.EEXIST) {
		s.stuck[ref.dir] = ref.from
	}
	return err
}

func (r asideRef) restore() error {
	t, err := r.open()
	if t == nil {
		return err
	}
	defer t.close()
	dir := t.fd()
	err = unix.Renameat2(dir, t.name, dir, r.name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		err = linkAside(dir, t.name, r.name) // the file system knows no such rename
	}
	switch {
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%s is there by now; left as it is: %w", r.name, err)
	case err != nil:
		return &os.LinkError{Op: "rename", Old: t.path, New: r.name, Err: unlinkHint(dir, t.name, err)}
	}
	return os.NewSyscallError("sync "+filepath.Dir(t.path), unix.Fsync(dir))
}

func linkAside(dir int, from, to string) error {
	if err := unix.Linkat(dir, from, dir, to, 0); err != nil {
		return err
	}
	return unix.Unlinkat(dir, from, 0)
}
