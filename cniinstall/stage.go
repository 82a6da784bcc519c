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
	"path/filepath"
	"syscall"

	"github.com/slipway-dev/slipway/internal/durable"
)

// staged is a target's content beside its place, complete, durable, read back,
// with its mode and owner, and open for writing in no process: it can be
// executed, and once renamed nobody meets "text file busy".
type staged struct {
	path string
	lock *os.File // tells sweepers that it is wanted
	sum  string   // SHA-256 in hex, where asked for
	done bool
}

// stage writes the target's content beside its place.
func (t *target) stage(ctx context.Context, sum bool) error {
	for range 10 {
		s, err := t.tryStage(ctx, sum)
		if err != nil {
			return fmt.Errorf("write %s: %w", t.path, hint(err))
		}
		if s != nil {
			t.staged = s
			return nil
		}
	}
	return fmt.Errorf("write %s: its temporary file is removed each time", t.path)
}

// tryStage gives nil if a sweeper took the file between two locks.
func (t *target) tryStage(ctx context.Context, sum bool) (*staged, error) {
	f, err := durable.Create(t.path, t.mode)
	if err != nil {
		return nil, err
	}
	s := &staged{path: f.Name()}
	err = t.fill(ctx, f.File)
	if err == nil {
		s.sum, err = t.verify(ctx, f.File, sum)
	}
	if err == nil {
		err = f.Sync()
	}
	ok, err := s.seal(f, err)
	if err != nil || !ok {
		s.discard()
		return nil, err
	}
	return s, nil
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

// seal closes the file for writing, also in a child that is just being forked,
// and locks it anew for reading. It reports whether the file is still there.
func (s *staged) seal(f *durable.File, err error) (bool, error) {
	if err == nil {
		s.lock, err = os.Open(s.path)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	syscall.ForkLock.RLock() // until children forked before the close have exec'd
	syscall.ForkLock.RUnlock()
	return lockStaged(s.lock)
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
func (s *staged) publish(place string) error {
	if !hasModes { // such a system does not rename what is open
		s.lock.Close()
	}
	if err := os.Rename(s.path, place); err != nil {
		return fmt.Errorf("put %s in place: %w", place, hint(err))
	}
	s.done = true
	s.lock.Close()
	return durable.SyncDir(filepath.Dir(place))
}

// discard removes the file, unless it is in its place.
func (s *staged) discard() {
	if s == nil || s.done {
		return
	}
	os.Remove(s.path) // before the lock goes
	s.lock.Close()
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
