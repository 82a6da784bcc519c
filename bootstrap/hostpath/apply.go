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

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
)

// The modes of new files and directories are those that the kubelet uses.
const (
	dirMode  fs.FileMode = 0o755
	fileMode fs.FileMode = 0o644
	lockMode fs.FileMode = 0o600
)

// CheckPermission returns an error if this process is not permitted to make the missing
// paths.
func (p Paths) CheckPermission(context.Context) error {
	var errs []error
	for _, path := range p.List {
		there, err := path.look()
		if err == nil && !there {
			_, err = durable.Writable(filepath.Dir(path.clean()))
		}
		if err != nil {
			errs = append(errs, hint("make host path "+path.Path, err))
		}
	}
	return errors.Join(errs...)
}

// Apply makes the missing paths, durably, and records each of them first. If a path
// cannot be made, the others still are; the errors are joined. Existing paths are
// not changed.
func (p Paths) Apply(ctx context.Context) error {
	var errs []error
	for _, path := range p.List {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, p.ensure(ctx, path))
	}
	errs = append(errs, journal.From(ctx).Wish(ctx, p.wishes()...))
	return errors.Join(errs...)
}

func (p Paths) ensure(ctx context.Context, path Path) error {
	there, err := path.look()
	if err != nil || there {
		return err
	}
	if _, err := path.check(map[string]Type{}); err != nil {
		return err
	}
	if err := p.make(ctx, path); err != nil {
		return hint("make host path "+path.Path, err)
	}
	_, err = path.look() // another program may have been faster, with another type
	return err
}

func (p Paths) make(ctx context.Context, what Path) error {
	path := what.clean()
	switch {
	case what.Type == DirectoryOrCreate:
		return files.MkdirAll(ctx, journal.From(ctx), path, dirMode)
	case kept(path):
		_, err := createFile(path)
		return err
	}
	return files.Make(ctx, journal.From(ctx), path, emptyFile(), func() (bool, error) { return createFile(path) })
}

func emptyFile() journal.State {
	empty := sha256.Sum256(nil)
	return journal.State{
		Type: "file", Mode: uint32(fileMode), UID: os.Geteuid(), GID: os.Getegid(),
		SHA256: hex.EncodeToString(empty[:]),
	}
}

// createFile makes an empty file, unless something exists by now. It never
// replaces a file, since a process may hold a lock on it.
func createFile(path string) (made bool, err error) {
	d, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return false, err
	}
	defer d.Close()
	err = d.CreateNew(filepath.Base(path), modeOf(path))
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// modeOf returns the mode with which the file at path is made. If every user could open a
// lock file, every user could hold the lock.
func modeOf(path string) fs.FileMode {
	if kept(path) {
		return lockMode
	}
	return fileMode
}

// kept reports whether the file at path, once made, is never removed: all iptables
// processes on the node lock it (xtables.lock), and a process that has it open
// would no longer exclude one that made a new file.
func kept(path string) bool {
	return strings.HasSuffix(filepath.ToSlash(path), "/run/xtables.lock")
}
