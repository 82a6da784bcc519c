// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/slipway-dev/slipway/internal/record"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// KindMount is the kind of a mount's entry in a record. Its object is
// [Object] of the path, so that the directory can have an entry too; its
// After.Value is the mount's identity.
const KindMount = "mount"

const objectPrefix = "mount on "

// Object names the mount on path in a record.
func Object(path string) string { return objectPrefix + path }

// Request is a mount to be made.
type Request struct {
	FSType, Options string
	Before          record.State             // what was mounted on the place, for the record
	Clear           func(place string) error // called when all else is ready, to free the place; may be nil
}

// Attach makes the directories that p misses and mounts on it, noting both in
// the book called name in stateDir ("": nowhere). When it returns an error
// that matches EBUSY, another made such a mount meanwhile.
func Attach(k Kernel, stateDir, name string, p Place, r Request) error {
	book, boot, err := openBook(k, stateDir, name)
	if err != nil {
		return err
	}
	identity, begun := "", false
	unbegin := unbegin(book, p.Path)
	err = k.Mount(p.Path, r.FSType, r.Options, func(_, mount string) error {
		if err := prepare(book, p, entry(p.Path, mount, boot, r.Before)); err != nil {
			return err
		}
		identity, begun = mount, true
		if r.Clear != nil {
			return r.Clear(p.Path)
		}
		return nil
	})
	if err != nil {
		err = hint(r.FSType, err)
		if begun {
			err = errors.Join(err, unbegin())
		}
		if begun && !errors.Is(err, syscall.EBUSY) { // else another's mount is on them
			err = errors.Join(err, removeDirs(book, p))
		}
		return err
	}
	if book == nil {
		return nil
	}
	return complete(k, book, p.Path, identity)
}

// prepare makes the directories and begins the entry, if there is a book.
func prepare(book *record.Book, p Place, e record.Entry) error {
	err := makeDirs(book, p)
	if err == nil && book != nil {
		err = book.Begin(e)
	}
	if err != nil {
		// What cannot be removed or forgotten now is a directory begun in the
		// record, or nothing: Revert takes it back. The first error tells more.
		_ = removeDirs(book, p)
	}
	return err
}

// unbegin returns what brings back the page that path has in book now.
func unbegin(book *record.Book, path string) func() error {
	if book == nil {
		return func() error { return nil }
	}
	was, known := book.Lookup(Object(path))
	return func() error {
		if !known {
			return book.Forget(Object(path))
		}
		if err := book.Begin(was); err != nil || !was.Done {
			return err
		}
		return book.Complete(was)
	}
}

// Adopt completes the entry of a mount that was attached by a process that was
// killed before it could.
func Adopt(k Kernel, stateDir, name string, p Place) error {
	if stateDir == "" {
		return nil
	}
	book, boot, err := openBook(k, stateDir, name)
	if err != nil {
		return err
	}
	e, ok := book.Lookup(Object(p.Path))
	if !ok || e.Done || e.After.Value != p.Mount || e.Boot != boot {
		return nil
	}
	return book.Complete(e)
}

func entry(path, mount, boot string, before record.State) record.Entry {
	return record.Entry{
		Kind: KindMount, Object: Object(path), Boot: boot, Before: before,
		After: record.State{Type: KindMount, Value: mount},
	}
}

// complete notes that the mount was attached; its identity is looked up where it
// was not known before.
func complete(k Kernel, book *record.Book, path, identity string) error {
	if identity == "" {
		var err error
		if _, _, identity, err = k.Stat(path); err != nil {
			return err
		}
	}
	return book.Complete(entry(path, identity, "", record.State{}))
}

// makeDirs makes the directories that p misses.
func makeDirs(book *record.Book, p Place) error {
	if book != nil && len(p.Missing) > 0 {
		return dirHint(p.Path, book.MkdirAll(p.Path, 0o755))
	}
	for _, dir := range p.Missing {
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = os.Chmod(dir, 0o755) // the umask may have taken bits away
		}
		if err != nil {
			return dirHint(p.Path, err)
		}
	}
	return nil
}

// removeDirs takes back what makeDirs made, as far as nobody uses it.
func removeDirs(book *record.Book, p Place) error {
	for _, dir := range slices.Backward(p.Missing) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil // in use
		}
		if book == nil {
			continue
		}
		if err := book.Forget(dir); err != nil {
			return err
		}
	}
	return nil
}

// openBook opens the book, nil without a state directory.
func openBook(k Kernel, stateDir, name string) (book *record.Book, boot string, err error) {
	if stateDir == "" {
		return nil, "", nil
	}
	if book, err = record.Open(stateDir, name); err != nil {
		return nil, "", err
	}
	boot, err = bootID(k)
	return book, boot, err
}

func bootID(k Kernel) (string, error) {
	return record.ReadBootID(func(path string) ([]byte, error) {
		f, err := k.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(f)
	})
}

// hint says what is missing where the kernel's answer does not.
func hint(fstype string, err error) error {
	if errors.Is(err, syscall.ENODEV) {
		return remedy.Add(err, fmt.Sprintf("this kernel has no %s file system: %s", fstype,
			map[string]string{"bpf": "CONFIG_BPF_SYSCALL", "cgroup2": "CONFIG_CGROUPS"}[fstype]))
	}
	return remedy.Capabilities(err, map[string]string{"bpf": "in the initial user namespace"}[fstype], remedy.SysAdmin)
}

func dirHint(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("make directory %s: %w", path, remedy.File(err))
}
