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

// The modes of what is made, as the kubelet has them.
const (
	dirMode  fs.FileMode = 0o755
	fileMode fs.FileMode = 0o644
	lockMode fs.FileMode = 0o600
)

// Apply makes what is missing, durably, and records it first. A path that
// cannot be made does not stop the others; the errors are joined. What exists
// is left as it is.
func (a Action) Apply(ctx context.Context) error {
	var errs []error
	for _, p := range a.Paths {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, a.ensure(ctx, p))
	}
	return errors.Join(errs...)
}

func (a Action) ensure(ctx context.Context, p Path) error {
	there, err := p.look()
	if err != nil || there {
		return err
	}
	if _, err := p.check(map[string]Type{}); err != nil {
		return err
	}
	if err := a.make(ctx, p); err != nil {
		return hint("make host path "+p.Path, err)
	}
	_, err = p.look() // somebody else may have been faster, with something else
	return err
}

func (a Action) make(ctx context.Context, p Path) error {
	path := p.clean()
	switch {
	case p.Type == DirectoryOrCreate:
		return files.MkdirAll(ctx, a.Journal, path, dirMode)
	case kept(path):
		_, err := createFile(path)
		return err
	}
	return files.Make(ctx, a.Journal, path, emptyFile(), func() (bool, error) { return createFile(path) })
}

func emptyFile() journal.State {
	empty := sha256.Sum256(nil)
	return journal.State{
		Type: "file", Mode: uint32(fileMode), UID: os.Geteuid(), GID: os.Getegid(),
		SHA256: hex.EncodeToString(empty[:]),
	}
}

// createFile makes an empty file, unless something is there by now. It never
// replaces: a process may hold a lock on what it would replace.
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

// modeOf is the mode that the file at path is made with. A lock that everybody
// could open everybody could hold.
func modeOf(path string) fs.FileMode {
	if kept(path) {
		return lockMode
	}
	return fileMode
}

// kept reports whether the file at path stays for ever, once made: all of the
// node's iptables processes lock it (xtables.lock), and one that has it open
// would no longer exclude one that makes it anew.
func kept(path string) bool {
	return strings.HasSuffix(filepath.ToSlash(path), "/run/xtables.lock")
}
