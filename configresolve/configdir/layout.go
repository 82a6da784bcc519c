// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/durable"
)

// The layout is the one in which the kubelet mounts a ConfigMap:
//
//	KEY -> ..data/KEY
//	..data -> ..2026_01_02_15_04_05.1234
//	..2026_01_02_15_04_05.1234/KEY
//
// Everything but the keys starts with "..", which readers of such a directory skip.
const (
	dataLink   = "..data"
	tempPrefix = "..tmp." // of our links before their rename
	fileMode   = 0o644
	dirMode    = 0o755
)

// A ConfigMap of 1 MiB has hundreds of keys. The directory may also hold links of
// an earlier configuration, and other programs' files.
const (
	maxKeys  = 10_000
	maxNames = 50_000
)

// leftover matches the names of data directories, temporary links and the lock,
// both ours and those of other writers of this layout: the kubelet (dated
// directories, ..data_tmp) and Cilium's init container (..data_SECONDS,
// ..data.tmp).
var leftover = regexp.MustCompile(`^\.\.(lock|\d{4}(_\d\d){5}\.\d+|data_\d+|data_tmp|data\.tmp|tmp\.\d+)$`)

// layout is a directory's content, compared with the wanted one.
type layout struct {
	all     map[string]fs.FileInfo // the directory's content
	linkOf  map[string]string      // targets of the symbolic links in it, by name
	data    string                 // name of the data directory that ..data shows; empty if none
	held    map[string]fs.FileInfo // its content
	values  map[string]value       // its files that could be read
	plain   bool                   // it and its files have the modes that this package gives them
	want    map[string]value       // nil: nothing is wanted
	same    bool                   // its content is exactly as wanted
	add     []string               // keys whose link is missing, wrong, or something else
	remove  []string               // links of keys that are no more
	litter  []string               // data directories and links that nothing uses
	blocked error                  // a directory in the place of a key, of its value or of ..data
}

// foreign returns an error if the directory is not one of a configuration: it is
// not empty but has no ..data link of ours, so that a file with the name of a key
// belongs to another program. A ..data that the links of keys lead through is
// corrected instead. A new file system holds lost+found.
func (l *layout) foreign(d *durable.Dir) error {
	if strings.HasPrefix(l.linkOf[dataLink], "..") {
		return nil
	}
	names := slices.Sorted(maps.Keys(l.all))
	led := slices.ContainsFunc(names, l.leadsToKey)
	for _, name := range names {
		switch {
		case l.leadsToKey(name), leftover.MatchString(name), name == "lost+found":
		case name == dataLink && (led || l.all[name].IsDir()): // a directory blocks what has its name
		default:
			return fmt.Errorf("it is not a configuration directory, and contains %s: move it away, or name a new or an empty directory", d.Path(name))
		}
	}
	return nil
}

// leadsToKey reports whether name is a link such as those of keys.
func (l *layout) leadsToKey(name string) bool {
	return strings.HasPrefix(l.linkOf[name], dataLink+"/")
}

// linkTo returns the target of a key's link.
func linkTo(key string) string { return dataLink + "/" + key }

func (l *layout) done() bool {
	return l.blocked == nil && l.same && len(l.add)+len(l.remove)+len(l.litter) == 0
}

// attempts bounds how often a directory is read while another writer is at work in it.
// Each of that writer's changes takes longer than a read.
const attempts = 100

// inspect reads the directory d against want and changes nothing. It reads no more
// than maxBytes.
func inspect(ctx context.Context, d *durable.Dir, want map[string]value) (l *layout, err error) {
	for range attempts {
		if l, err = inspectOnce(ctx, d, want); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return l, err
}

// inspectOnce returns an error that matches [fs.ErrNotExist] if a listed file
// disappears before it is inspected.
func inspectOnce(ctx context.Context, d *durable.Dir, want map[string]value) (l *layout, err error) {
	l = &layout{linkOf: map[string]string{}, want: want}
	if l.all, err = list(ctx, d); err != nil {
		return nil, err
	}
	for name, info := range l.all {
		if info.Mode().Type() == fs.ModeSymlink {
			if l.linkOf[name], err = d.Readlink(name); err != nil {
				return nil, err
			}
		}
	}
	if l.findData(); l.data != "" {
		if err := l.readData(ctx, d); err != nil {
			return nil, err
		}
	}
	l.compare(d)
	return l, nil
}

// list describes the content of d.
func list(ctx context.Context, d *durable.Dir) (map[string]fs.FileInfo, error) {
	names, err := d.NamesAtMost(maxNames)
	if err != nil {
		return nil, err
	}
	all := make(map[string]fs.FileInfo, len(names))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if all[name], err = d.Lstat(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// findData accepts as the data directory only one in the same directory as ..data.
func (l *layout) findData() {
	target := l.linkOf[dataLink]
	if info, ok := l.all[target]; ok && info.IsDir() && strings.HasPrefix(target, "..") {
		l.data = target
	}
}

// readData reads the data directory.
func (l *layout) readData(ctx context.Context, d *durable.Dir) error {
	data, err := d.OpenDir(l.data)
	if err != nil {
		return err
	}
	defer data.Close()
	dir, err := data.Stat()
	if err != nil {
		return err
	}
	if l.held, err = list(ctx, data); err != nil {
		return err
	}
	l.plain = dir.Mode().Perm() == dirMode
	size := int64(0)
	for _, info := range l.held {
		l.plain = l.plain && info.Mode().Perm() == fileMode
		size += min(info.Size(), maxBytes+1)
	}
	if size <= maxBytes {
		l.values, err = readValues(ctx, data, l.held)
	}
	return err
}

// readValues reads the files of d. One on which a process has a lease (F_SETLEASE) is left
// out, since to open it would take as long as that process likes.
func readValues(ctx context.Context, d *durable.Dir, files map[string]fs.FileInfo) (map[string]value, error) {
	values := map[string]value{}
	for name, info := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		v, err := readValue(d, name, info.Size())
		switch {
		case err == nil:
			values[name] = v
		case !errors.Is(err, syscall.EAGAIN):
			return nil, err
		}
	}
	return values, nil
}

// readValue reads a file of the given size, and one byte more if it has grown.
func readValue(d *durable.Dir, name string, size int64) (v value, err error) {
	f, err := d.Open(name)
	if err != nil {
		return v, err
	}
	defer f.Close()
	sum := sha256.New()
	v.size, err = io.Copy(sum, io.LimitReader(f, size+1))
	sum.Sum(v.sum[:0])
	return v, err
}

func (l *layout) compare(d *durable.Dir) {
	l.same = l.plain && len(l.held) == len(l.want) && maps.Equal(l.values, l.want)
	for key := range l.want {
		if l.linkOf[key] != linkTo(key) {
			l.add = append(l.add, key)
		}
	}
	var blocked []string
	for name, info := range l.all {
		_, wanted := l.want[name]
		switch {
		case info.IsDir() && (wanted || name == dataLink):
			blocked = append(blocked, name)
		case name == l.data || name == dataLink || wanted:
		case l.leadsToKey(name):
			l.remove = append(l.remove, name)
		case leftover.MatchString(name):
			l.litter = append(l.litter, name)
		}
	}
	for name, info := range l.held {
		if info.IsDir() { // it would survive the removal of the data directory
			blocked = append(blocked, linkTo(name))
		}
	}
	for _, names := range [][]string{l.add, l.remove, l.litter, blocked} {
		slices.Sort(names)
	}
	var errs []error
	for _, name := range blocked {
		errs = append(errs, fmt.Errorf("%s is a directory, in the place of a link or a value: move it away", d.Path(name)))
	}
	l.blocked = errors.Join(errs...)
}

// reserved reports whether the resolver itself sets the key.
func reserved(key string) bool {
	return key == "config-sources" || key == "config-sources-overrides"
}

// emptied returns an error if no keys are wanted but the existing configuration has some.
func (l *layout) emptied() error {
	for key := range l.want {
		if !reserved(key) {
			return nil
		}
	}
	keys := 0
	for name, info := range l.held {
		if info.Mode().IsRegular() && !reserved(name) {
			keys++
		}
	}
	if keys == 0 {
		return nil
	}
	return fmt.Errorf("%w, and %d keys would be removed: look at the sources (an unset variable? an empty file?)", ErrEmpty, keys)
}
