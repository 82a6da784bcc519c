// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/input"
)

// staged is a target's content beside its place, complete, durable, read back, with
// its mode and owner, and open for writing in no process: it can be executed, and
// once renamed no runtime meets "text file busy".
type staged struct {
	file *durable.File
	sum  string // SHA-256 in hex
	done bool
}

// stage writes the target's content beside its place.
func (t *target) stage(ctx context.Context, d *durable.Dir) error {
	f, err := d.Create(t.name(), t.mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", t.path, hint(err))
	}
	sum, err := t.fill(ctx, f.File)
	if err == nil {
		err = f.Seal()
	}
	if err != nil {
		f.Abort()
		return fmt.Errorf("write %s: %w", t.path, hint(err))
	}
	t.staged = &staged{file: f, sum: sum}
	return nil
}

// fill copies the content, corrects the owner, which in a folder with setgid is not
// the process's, and reads it back.
func (t *target) fill(ctx context.Context, f *os.File) (sum string, err error) {
	if err := t.copyTo(ctx, f); err != nil {
		return "", err
	}
	if err := setAttributes(f, t); err != nil {
		return "", err
	}
	return t.readBack(ctx, f)
}

func (t *target) copyTo(ctx context.Context, f *os.File) error {
	src, err := t.open()
	if err != nil {
		return err
	}
	defer src.Close()
	before, err := modTime(src)
	if err != nil {
		return err
	}
	size, err := io.CopyBuffer(struct{ io.Writer }{f}, input.WithContext(ctx, src), make([]byte, piece)) // f's own way has a smaller one
	if err != nil {
		return err
	}
	after, err := modTime(src)
	if err != nil {
		return err
	}
	if size != t.size || !after.Equal(before) {
		return errors.New("the source changed while it was being copied")
	}
	return nil
}

// modTime returns src's modification time, or zero if src is not a file.
func modTime(src io.Reader) (time.Time, error) {
	file, ok := src.(fs.File)
	if !ok {
		return time.Time{}, nil
	}
	info, err := file.Stat()
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// readBack compares the written file with the content, and hashes it, while the
// disk syncs: each of the three takes about as long as the others.
func (t *target) readBack(ctx context.Context, f *os.File) (sum string, err error) {
	want, err := t.open()
	if err != nil {
		return "", err
	}
	defer want.Close()
	h := sha256.New()
	var hashErr, syncErr error
	var others sync.WaitGroup
	others.Go(func() {
		_, hashErr = io.CopyBuffer(h, input.WithContext(ctx, io.NewSectionReader(f, 0, t.size)), make([]byte, piece))
	})
	others.Go(func() { syncErr = f.Sync() })
	same, err := equal(input.WithContext(ctx, want), io.NewSectionReader(f, 0, t.size))
	others.Wait()
	if err == nil && !same {
		err = errors.New("the written file reads back differently")
	}
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, hashErr, syncErr)
}

// publish puts the file in its place.
func (s *staged) publish() error {
	if err := s.file.Commit(); err != nil {
		return hint(err)
	}
	s.done = true
	return nil
}

// discard removes the file, unless it is in its place.
func (s *staged) discard() {
	if s != nil {
		s.file.Abort()
	}
}

// setAttributes corrects mode and owner of the open file.
func setAttributes(f *os.File, t *target) error {
	info, err := f.Stat()
	if err != nil || !hasModes {
		return err
	}
	if uid, gid := ownerOf(info); uid != os.Geteuid() || gid != os.Getegid() {
		if err := f.Chown(os.Geteuid(), os.Getegid()); err != nil {
			return err
		}
	}
	return f.Chmod(t.mode) // after chown, which may take bits away
}
