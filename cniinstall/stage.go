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
	"math"
	"os"

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
	err = t.fill(ctx, f.File)
	if err == nil {
		s.sum, err = t.verify(ctx, f.File, sum)
	}
	if err == nil {
		err = f.Seal()
	}
	if err != nil {
		f.Abort()
		return fmt.Errorf("write %s: %w", t.path, hint(err))
	}
	t.staged = s
	return nil
}

// fill copies the content, within the kernel where it can, and puts the owner
// right, which in a folder with setgid is not the process's.
func (t *target) fill(ctx context.Context, f *os.File) error {
	src, err := t.open()
	if err != nil {
		return err
	}
	defer src.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.CopyN(f, src, 8<<20); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	startWriteback(f)
	return setAttributes(f, t)
}

// verify reads back what was written, and gives its hash where asked for one.
func (t *target) verify(ctx context.Context, f *os.File, sum bool) (string, error) {
	h, also := sha256.New(), io.Discard
	if sum {
		also = h
	}
	same, err := t.isIn(ctx, io.NewSectionReader(f, 0, math.MaxInt64), also)
	if err != nil {
		return "", fmt.Errorf("read back: %w", err)
	}
	if !same {
		return "", errors.New("what was written reads back differently")
	}
	return hex.EncodeToString(h.Sum(nil)), nil
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
