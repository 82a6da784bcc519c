// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	path string // the temporary one
	sum  string // SHA-256 in hex, where asked for
	done bool
}

// stage writes the target's content beside its place.
func (t *target) stage(ctx context.Context, sum bool) error {
	f, err := durable.Create(t.path, t.mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", t.path, hint(err))
	}
	s := &staged{file: f, path: f.Name()}
	h := startHasher(sum)
	err = t.fill(ctx, f.File, h)
	if err == nil {
		err = f.Seal()
	}
	if s.sum = h.finish(); err != nil {
		f.Abort()
		return fmt.Errorf("write %s: %w", t.path, hint(err))
	}
	t.staged = s
	return nil
}

// fill copies the content, reads it back, and puts the owner right, which in a
// folder with setgid is not the process's.
func (t *target) fill(ctx context.Context, f *os.File, h *hasher) error {
	src, err := t.open()
	if err != nil {
		return err
	}
	defer src.Close()
	before, err := changed(src)
	if err != nil {
		return err
	}
	size, err := copyTo(ctx, f, src, h)
	if err != nil {
		return err
	}
	after, err := changed(src)
	if err != nil {
		return err
	}
	if size != t.size || !after.Equal(before) {
		return errors.New("the source changed while it was being copied")
	}
	return setAttributes(f, t)
}

// changed is when src was; of what is no file, the zero time.
func changed(src io.Reader) (time.Time, error) {
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

// copyTo copies src, reading back each piece. The disk is at work meanwhile, and
// h.
func copyTo(ctx context.Context, f *os.File, src io.Reader, h *hasher) (size int64, err error) {
	back := make([]byte, piece)
	for last := false; !last; {
		if err := ctx.Err(); err != nil {
			return size, err
		}
		buf := h.buffer()
		n, err := io.ReadFull(src, buf)
		if last = err != nil; realError(err) != nil {
			return size, err
		}
		if _, err := f.Write(buf[:n]); err != nil {
			return size, err
		}
		startWriteback(f, size, int64(n))
		if err := readBack(f, size, buf[:n], back); err != nil {
			return size, err
		}
		h.add(buf[:n])
		size += int64(n)
	}
	return size, nil
}

// readBack compares what is in f from offset with what was written there, in
// pieces that fit into back.
func readBack(f *os.File, offset int64, wrote, back []byte) error {
	for len(wrote) > 0 {
		n := min(len(wrote), len(back))
		if _, err := f.ReadAt(back[:n], offset); err != nil {
			return fmt.Errorf("read back: %w", err)
		}
		if !bytes.Equal(wrote[:n], back[:n]) {
			return errors.New("what was written reads back differently")
		}
		wrote, offset = wrote[n:], offset+int64(n)
	}
	return nil
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
