// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfmap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/pin"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

const dirMode = 0o700

func (p Pinned) check(ctx context.Context) (changes []string, err error) {
	dir, err := p.open()
	if err != nil {
		return nil, err
	}
	if dir != nil {
		defer dir.Close()
	}
	changes, wishes, err := p.look(ctx, dir)
	shared, conflict := journal.From(ctx).CheckWishes(ctx, wishes...)
	return append(changes, shared...), errors.Join(err, conflict)
}

// look returns the changes to make to the maps, and the wanted maps.
func (p Pinned) look(ctx context.Context, dir *durable.Dir) (changes []string, wishes []journal.Wish, err error) {
	var errs []error
	for _, spec := range p.Maps {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		s, err := look(dir, p.path(spec.Name), spec)
		errs = append(errs, err)
		changes, wishes = append(changes, s.changes()...), append(wishes, p.wish(ctx, spec, s))
	}
	return changes, wishes, errors.Join(errs...)
}

// wish is the existing map, or the one to create.
func (p Pinned) wish(ctx context.Context, spec *ebpf.MapSpec, s state) journal.Wish {
	e := p.entry(ctx, spec.Name, journal.State{Type: typeMap, Value: shapeOf(spec)})
	if !s.missing {
		e.After = s.found
	}
	return journal.Wish{Entry: e, Met: !s.missing, Claim: true}
}

func (p Pinned) apply(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("pin maps: %w", err)
	}
	dir, err := p.openOrMake(ctx)
	if err != nil {
		return err
	}
	defer dir.Close()
	var errs []error
	for _, spec := range p.Maps {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, p.ensure(ctx, dir, spec))
	}
	if err := errors.Join(errs...); err != nil || journal.From(ctx) == nil {
		return err
	}
	_, wishes, err := p.look(ctx, dir)
	if err != nil {
		return err
	}
	return journal.From(ctx).Wish(ctx, wishes...)
}

func (p Pinned) path(name string) string { return filepath.Join(p.Dir, name) }

// open opens the directory; nil if there is none.
func (p Pinned) open() (*durable.Dir, error) {
	dir, err := durable.OpenDir(p.Dir)
	place := p.Dir
	if errors.Is(err, fs.ErrNotExist) {
		place = filepath.Dir(p.Dir)
		dir, err = durable.OpenDir(place)
	}
	if err != nil {
		return nil, fmt.Errorf("pin maps: %w", remedy.File(err))
	}
	if err := onBPFFS(dir, place); err != nil || place != p.Dir {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

func onBPFFS(dir *durable.Dir, path string) error {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(dir.File().Fd()), &s); err != nil {
		return fmt.Errorf("pin maps: ask for the file system of %s: %w", path, err)
	}
	if uint32(s.Type) != unix.BPF_FS_MAGIC {
		return code.Errorf(code.BPFMapNoBPFFS, "pin maps: %s is not on a BPF file system (mount one first)", path)
	}
	return nil
}

func (p Pinned) openOrMake(ctx context.Context) (*durable.Dir, error) {
	dir, err := p.open()
	if err != nil || dir != nil {
		return dir, err
	}
	e := p.dirEntry(ctx)
	if err := journal.From(ctx).Begin(ctx, e); err != nil {
		return nil, err
	}
	above, err := durable.OpenDir(filepath.Dir(p.Dir))
	if err == nil {
		err = errors.Join(above.Mkdir(filepath.Base(p.Dir), dirMode), above.Close())
	}
	if errors.Is(err, fs.ErrExist) { // another program has made it
		err = journal.From(ctx).Forget(ctx, e)
	} else if err == nil {
		err = journal.From(ctx).Complete(ctx, e)
	}
	if err != nil {
		return nil, fmt.Errorf("pin maps: %w", remedy.File(err))
	}
	if dir, err = p.open(); err == nil && dir == nil {
		err = fmt.Errorf("pin maps: %s was removed meanwhile", p.Dir)
	}
	return dir, err
}

// state describes the object at a map's path.
type state struct {
	path     string
	missing  bool          // there is no map, or another one
	found    journal.State // of the existing map
	differs  error         // how the existing map differs
	leftover bool          // a replacement that was killed has left its map
}

func (s state) changes() (changes []string) {
	switch {
	case s.differs != nil:
		changes = append(changes, fmt.Sprintf("replace the map %s with an empty one: %v", s.path, s.differs))
	case s.missing:
		changes = append(changes, "create the map "+s.path)
	}
	if s.leftover {
		changes = append(changes, fmt.Sprintf("remove %s, left by a replacement that was cut short", nextPath(s.path)))
	}
	return changes
}

func nextPath(path string) string { return filepath.Join(filepath.Dir(path), next+filepath.Base(path)) }

// look compares the pinned map with the spec. A nil dir is a missing one.
func look(dir *durable.Dir, path string, spec *ebpf.MapSpec) (s state, err error) {
	s = state{path: path, missing: true}
	if dir == nil {
		return s, nil
	}
	if _, err := dir.Lstat(next + spec.Name); err == nil {
		s.leftover = true
	}
	m, err := load(dir, spec.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return state{path: path}, fmt.Errorf("look at the map %s: %w", path, remedy.File(err))
	}
	defer m.Close()
	if err := spec.Compatible(m); errors.Is(err, ebpf.ErrMapIncompatible) {
		s.differs = err
	} else if err != nil {
		return state{path: path}, fmt.Errorf("compare the map %s: %w", path, err)
	}
	s.missing = s.differs != nil
	s.found, err = stateOf(m)
	return s, err
}

var errNoMap = errors.New("not a pinned map")

// load opens the map pinned under the name. Any other object is an error.
func load(dir *durable.Dir, name string) (*ebpf.Map, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is %w: %v", errNoMap, info.Mode())
	}
	object, err := pin.Load(at(dir, name), nil)
	if err != nil {
		return nil, err
	}
	m, is := object.(*ebpf.Map)
	if !is {
		return nil, errors.Join(fmt.Errorf("it is %w: %T", errNoMap, object), object.Close())
	}
	return m, nil
}

// at is the path of a name in an open directory, for calls that take a path.
func at(dir *durable.Dir, name string) string {
	return fmt.Sprintf("/proc/thread-self/fd/%d/%s", dir.File().Fd(), name)
}

func (p Pinned) ensure(ctx context.Context, dir *durable.Dir, spec *ebpf.MapSpec) error {
	s, err := look(dir, p.path(spec.Name), spec)
	if err != nil {
		return err
	}
	if s.leftover {
		if err := dir.Remove(next + spec.Name); err != nil {
			return fmt.Errorf("pin maps: %w", remedy.File(err))
		}
	}
	if !s.missing {
		return nil
	}
	if err := p.pin(ctx, dir, spec, s.differs != nil); err != nil {
		return fmt.Errorf("pin the map %s: %w", s.path, err)
	}
	return nil
}

// pin creates a map and pins it at its path.
func (p Pinned) pin(ctx context.Context, dir *durable.Dir, spec *ebpf.MapSpec, replaces bool) error {
	spec = spec.Copy()
	spec.Pinning = ebpf.PinNone
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return err
	}
	defer m.Close()
	made, err := stateOf(m)
	if err != nil {
		return err
	}
	e := p.entry(ctx, spec.Name, made)
	_, known, err := journal.From(ctx).Lookup(ctx, e.Kind, e.Object)
	if err != nil {
		return err
	}
	if err := journal.From(ctx).Begin(ctx, e); err != nil {
		return err
	}
	if replaces {
		if err = m.Pin(at(dir, next+spec.Name)); err == nil {
			err = dir.Rename(next+spec.Name, spec.Name)
		}
	} else {
		err = m.Pin(at(dir, spec.Name)) // not over a pin that appeared meanwhile
	}
	if err != nil {
		if !known {
			err = errors.Join(err, journal.From(ctx).Forget(ctx, e))
		}
		return remedy.File(err)
	}
	return journal.From(ctx).Complete(ctx, e)
}

// entry is the journal entry of a map at its path.
func (p Pinned) entry(ctx context.Context, name string, after journal.State) journal.Entry {
	return journal.Entry{Kind: kindPin, Object: p.path(name), Boot: journal.From(ctx).Boot(), Needs: []string{p.Dir}, After: after}
}

func (p Pinned) dirEntry(ctx context.Context) journal.Entry {
	return journal.Entry{Kind: kindDir, Object: p.Dir, Boot: journal.From(ctx).Boot(), After: journal.State{Type: "dir"}}
}

func stateOf(m *ebpf.Map) (journal.State, error) {
	info, err := m.Info()
	if err != nil {
		return journal.State{}, fmt.Errorf("ask for the id of a map: %w", err)
	}
	id, ok := info.ID()
	if !ok {
		return journal.State{}, errors.New("the kernel reports no id of a map")
	}
	like := shape(info.Type, info.KeySize, info.ValueSize, info.MaxEntries, info.Flags)
	return journal.State{Type: typeMap, Value: like, File: strconv.FormatUint(uint64(id), 10)}, nil
}

// shapeOf is the shape of a map made by the spec, as far as the spec determines it.
func shapeOf(spec *ebpf.MapSpec) string {
	return shape(spec.Type, spec.KeySize, spec.ValueSize, spec.MaxEntries, spec.Flags)
}

func shape(kind ebpf.MapType, key, value, entries, flags uint32) string {
	return fmt.Sprintf("%v of %d entries, keys of %d bytes, values of %d, flags %#x", kind, entries, key, value, flags)
}
