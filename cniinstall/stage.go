// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
)

// staged is a target's content beside its place, complete, durable, read back,
// with its mode and owner, and open for writing in no process: it can be
// executed, and once renamed nobody meets "text file busy".
type staged struct {
	file *durable.File
	sum  hash.Hash // SHA-256, where it is to be recorded
	done bool
}

// stage writes the target's content beside its place, and hashes it where it is
// to be recorded: otherwise that would take the most time.
func (t *target) stage(ctx context.Context, d *durable.Dir, recorded bool) error {
	f, err := d.Create(t.name(), t.mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", t.path, hint(err))
	}
	var sum hash.Hash
	if recorded {
		sum = sha256.New()
	}
	if err = t.fill(ctx, f.File, sum); err == nil {
		err = f.Seal()
	}
	if err != nil {
		f.Abort()
		return fmt.Errorf("write %s: %w", t.path, hint(err))
	}
	t.staged = &staged{file: f, sum: sum}
	return nil
}

// fill copies the content, reads it back, and puts the owner right, which in a
// folder with setgid is not the process's.
func (t *target) fill(ctx context.Context, f *os.File, sum hash.Hash) error {
	src, err := t.open()
	if err != nil {
		return err
	}
	defer src.Close()
	before, err := modTime(src)
	if err != nil {
		return err
	}
	content := io.Reader(src)
	if sum != nil {
		content = io.TeeReader(src, sum)
	}
	size, err := copyTo(ctx, f, content)
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
	return setAttributes(f, t)
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

// copyTo copies src, reading back each piece. The disk is at work meanwhile.
func copyTo(ctx context.Context, f *os.File, src io.Reader) (size int64, err error) {
	buf, back := make([]byte, piece), make([]byte, piece)
	for last := false; !last; {
		if err := ctx.Err(); err != nil {
			return size, err
		}
		n, err := io.ReadFull(src, buf)
		if last = err != nil; realError(err) != nil {
			return size, err
		}
		if _, err := f.Write(buf[:n]); err != nil {
			return size, err
		}
		startWriteback(f, size, int64(n))
		if _, err := f.ReadAt(back[:n], size); err != nil {
			return size, fmt.Errorf("read back: %w", err)
		}
		if !bytes.Equal(buf[:n], back[:n]) {
			return size, errors.New("what was written reads back differently")
		}
		size += int64(n)
	}
	return size, nil
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

// setAttributes puts mode and owner of the open file right.
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
