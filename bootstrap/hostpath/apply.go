// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/record"
)

// The modes of what is made, as the kubelet has them.
const (
	dirMode  fs.FileMode = 0o755
	fileMode fs.FileMode = 0o644
)

// Apply makes what is missing, durably, and records it first. A path that
// cannot be made does not stop the others; the errors are joined. What exists
// is left as it is.
func (a Action) Apply(ctx context.Context) error {
	m := maker{stateDir: a.StateDir}
	var errs []error
	for _, p := range a.Paths {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, m.ensure(p))
	}
	return errors.Join(errs...)
}

// maker makes paths and records them. The record is opened when the first one
// is made: where nothing is to do, it does not matter.
type maker struct {
	stateDir string
	book     *record.Book
}

func (m *maker) ensure(p Path) error {
	there, err := p.look()
	if err != nil || there {
		return err
	}
	if _, err := p.check(map[string]Type{}); err != nil {
		return err
	}
	if err := m.open(); err != nil {
		return hint("record host path "+p.Path, err)
	}
	if err := m.make(p); err != nil {
		return hint("make host path "+p.Path, err)
	}
	_, err = p.look() // somebody else may have been faster, with something else
	return err
}

func (m *maker) open() (err error) {
	if m.stateDir != "" && m.book == nil {
		m.book, err = record.Open(m.stateDir, bookName)
	}
	return err
}

func (m *maker) make(p Path) error {
	path := p.clean()
	switch {
	case m.book == nil && p.Type == DirectoryOrCreate:
		return durable.MkdirAll(path, dirMode)
	case p.Type == DirectoryOrCreate:
		return m.book.MkdirAll(path, dirMode)
	case m.book == nil || kept(path):
		_, err := createFile(path)
		return err
	}
	return m.book.Make(record.KindFile, path, emptyFile(), func() (bool, error) { return createFile(path) })
}

func emptyFile() record.State {
	empty := sha256.Sum256(nil)
	return record.State{
		Type: "file", Mode: uint32(fileMode), UID: os.Geteuid(), GID: os.Getegid(),
		SHA256: hex.EncodeToString(empty[:]),
	}
}

// createFile makes an empty file, unless something is there by now. It never
// replaces: a process may hold a lock on what it would replace.
func createFile(path string) (made bool, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = errors.Join(f.Chmod(fileMode), f.Sync(), f.Close()) // the umask may have taken bits away
	if err != nil {
		return true, err
	}
	return true, durable.SyncDir(filepath.Dir(path))
}

// kept reports whether the file at path stays for ever, once made: all of the
// node's iptables processes lock it (xtables.lock), and one that has it open
// would no longer exclude one that makes it anew.
func kept(path string) bool {
	return strings.HasSuffix(filepath.ToSlash(path), "/run/xtables.lock")
}
