// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package input reads files and directories of others: their paths come from outside, and
// they may be anything, and may be exchanged meanwhile.
//
// A path may be a symbolic link, as all keys of a mounted ConfigMap are, but must lead to
// a regular file. The file is opened without waiting, so that a FIFO does not block, and
// read up to a bound, so that no file can take all memory. A directory is read in batches
// of names.
//
// For paths that must not be followed, in a state directory or below a destination, use
// package durable.
package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/slipway-dev/slipway/internal/filemode"
)

// Bounds on reading: far more than each kind of file should ever hold.
const (
	MaxValues    = 2 << 20  // the values of a directory: a ConfigMap or Secret holds 1 MiB at most
	MaxManifest  = 8 << 20  // of one in a file, where quoting makes six bytes of one
	MaxNetwork   = 1 << 20  // a CNI configuration
	MaxSysctl    = 1 << 20  // a sysctl.d file: systemd's longest line
	MaxFlags     = 1 << 20  // a file of flags
	MaxOwnership = 1 << 20  // an ownership file
	MaxModules   = 16 << 20 // a list of a kernel's modules: a distribution's has half of one
	MaxPlugin    = 1 << 30  // a CNI plugin: the largest has 70 MiB
	MaxNames     = 10_000   // the names that count, among all in a directory
)

// Open opens the regular file at path, for reading.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path) // first, since to open a device may do something
	if err != nil {
		return nil, err
	}
	if err := regular(path, info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func regular(path string, info fs.FileInfo) error {
	if mode := info.Mode(); !mode.IsRegular() {
		return fmt.Errorf("%s is a %s, not a regular file", path, filemode.Type(mode))
	}
	return nil
}

// ReadFile reads the regular file at path, of at most limit bytes.
func ReadFile(ctx context.Context, path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(ctx, f, limit)
}

// Read reads an open file of at most limit bytes.
func Read(ctx context.Context, f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, TooLarge(f.Name(), limit)
	}
	// Some regular files of /proc block, waiting for a line of the kernel's log.
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) }) // where there is one
	defer stop()
	content, err := io.ReadAll(io.LimitReader(WithContext(ctx, f), limit+1))
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("read %s: %w", f.Name(), context.Cause(ctx))
	case err != nil:
		return nil, err
	case int64(len(content)) > limit:
		return nil, TooLarge(f.Name(), limit)
	}
	return content, nil
}

// ErrTooLarge is matched by the error of a read that found more than its bound.
var ErrTooLarge = errors.New("larger")

// TooLarge is the error of a file that has more than limit bytes.
func TooLarge(path string, limit int64) error {
	return fmt.Errorf("%s is %w than %d bytes", path, ErrTooLarge, limit)
}

// WithContext returns a reader of r that fails once ctx ends.
func WithContext(ctx context.Context, r io.Reader) io.Reader { return reader{ctx, r} }

type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}

// atOnce is how many names are read at a time.
const atOnce = 256

// Entries yields the entries of an open directory, in no order, and the error that
// stopped it early. It starts at the file's offset.
func Entries(dir fs.ReadDirFile) iter.Seq2[fs.DirEntry, error] { return batches(dir.ReadDir) }

// Names is like Entries, but yields names only: for a directory in an [os.Root], ReadDir
// would ask the kernel about each entry.
func Names(dir fs.ReadDirFile) iter.Seq2[string, error] {
	if named, ok := dir.(interface {
		Readdirnames(n int) ([]string, error)
	}); ok {
		return batches(named.Readdirnames)
	}
	return func(yield func(string, error) bool) {
		for entry, err := range Entries(dir) {
			if err != nil {
				yield("", err)
				return
			}
			if !yield(entry.Name(), nil) {
				return
			}
		}
	}
}

// batches yields the results of read, a batch at a time.
func batches[T any](read func(n int) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			some, err := read(atOnce)
			for _, one := range some {
				if !yield(one, nil) {
					return
				}
			}
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				var none T
				yield(none, err)
				return
			}
		}
	}
}

// OpenDir opens the directory at path, and nothing else.
func OpenDir(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|onlyDir, 0) }

// ReadNames lists the names that count in the directory at path, in no order.
// More than MaxNames of them are an error.
func ReadNames(ctx context.Context, path string, counts func(name string) bool) ([]string, error) {
	dir, err := OpenDir(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return Collect(ctx, path, Names(dir), counts)
}

// Collect lists those names of the directory at path that count. More than MaxNames of
// them are an error.
func Collect(ctx context.Context, path string, names iter.Seq2[string, error], counts func(name string) bool) (all []string, err error) {
	for name, err := range names {
		if err == nil && ctx.Err() != nil {
			err = fmt.Errorf("list %s: %w", path, context.Cause(ctx))
		}
		switch {
		case err != nil:
			return nil, err
		case !counts(name):
			continue
		case len(all) == MaxNames:
			return nil, fmt.Errorf("%s holds more than %d files: move away those that do not belong there", path, MaxNames)
		}
		all = append(all, name)
	}
	return all, nil
}

// FS returns the tree below root; its files are opened without waiting.
func FS(root *os.Root) fs.FS { return tree{root} }

type tree struct{ root *os.Root }

func (t tree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, err := t.root.OpenFile(name, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Stat does not open the file: opening a device may have effects.
func (t tree) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return t.root.Stat(name)
}
