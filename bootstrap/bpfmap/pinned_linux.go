// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfmap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/pin"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// mapWants wants a map, and that nothing is left of an earlier replacement. A map that does
// not match is an earlier version's of the agent, and no original. One that matches is only
// claimed if an agent has made it.
func (p Pinned) mapWants(ctx context.Context, spec *ebpf.MapSpec) (wants []ledger.Want) {
	pinned := ledger.Want{
		Kind: pinKind(spec), Object: filepath.Join(p.Dir, spec.Name), Needs: []string{ledger.Want{Kind: dirKind(), Object: p.Dir}.ID()},
		To: mapState(shape(spec.Type, spec.KeySize, spec.ValueSize, spec.MaxEntries, spec.Flags)), Unnamed: true, Ready: p.ready,
	}
	pinned.To.Open = unread // so that it is staged
	found, differs, err := compare(pinned.Object, spec)
	switch {
	case err != nil:
		pinned.Ready = func(context.Context) error { return err }
	case differs:
		pinned.OwnCopy = true
	case !found.IsZero():
		pinned.To = found
	}
	left := pinned
	left.Object, left.To, left.OwnCopy = leftOf(pinned.Object), ledger.State{}, true
	if found, err := readPin(ctx, left.Object); err != nil || !found.IsZero() {
		wants = append(wants, left)
	}
	return append(wants, pinned)
}

// unread stands for the content of a map that is still to be made.
func unread() (io.ReadCloser, error) { return nil, errors.ErrUnsupported }

// compare looks at the map at a path, and reports whether it differs from the spec.
func compare(path string, spec *ebpf.MapSpec) (found ledger.State, differs bool, err error) {
	err = withMap(path, func(m *ebpf.Map) (err error) {
		if found, err = stateOf(m); err == nil {
			err = spec.Compatible(m)
		}
		return err
	})
	if errors.Is(err, ebpf.ErrMapIncompatible) {
		return found, true, nil
	}
	return found, false, err
}

// ready returns an error if the directory is not on a BPF file system, or cannot be made.
func (p Pinned) ready(context.Context) error {
	place := p.Dir
	dir, err := durable.OpenDir(place)
	if errors.Is(err, fs.ErrNotExist) {
		place = filepath.Dir(p.Dir)
		dir, err = durable.OpenDir(place)
	}
	if err != nil {
		return fmt.Errorf("pin maps: %w", remedy.File(err))
	}
	defer dir.Close()
	is, err := onBPFFS(dir)
	if err == nil && !is {
		err = code.Errorf(code.BPFMapNoBPFFS, "pin maps: %s is not on a BPF file system (mount one first)", place)
	}
	return err
}

func onBPFFS(dir *durable.Dir) (bool, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(dir.File().Fd()), &s); err != nil {
		return false, fmt.Errorf("pin maps: ask for the file system of %s: %w", dir.Path(), err)
	}
	return uint32(s.Type) == unix.BPF_FS_MAGIC, nil
}

// inDir calls f with the directory of a path. Without that, or if its file system was
// unmounted and the pins with it, there is nothing.
func inDir(path string, f func(dir *durable.Dir, name string) error) error {
	err := durable.In(path, func(dir *durable.Dir, name string) error {
		is, err := onBPFFS(dir)
		if !is {
			return err
		}
		return f(dir, name)
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the map %s: %w", path, remedy.File(err))
	}
	return nil
}

// withMap calls f with the map at a path, if there is one.
func withMap(path string, f func(m *ebpf.Map) error) error {
	return inDir(path, func(dir *durable.Dir, name string) error {
		m, err := load(dir, name)
		if err != nil {
			return err
		}
		defer m.Close()
		return f(m)
	})
}

func readPin(_ context.Context, path string) (s ledger.State, err error) {
	err = withMap(path, func(m *ebpf.Map) (err error) {
		s, err = stateOf(m)
		return err
	})
	return s, err
}

// writePin removes a pin. A map is made by [stage].
func writePin(_ context.Context, path string, to ledger.State) error {
	if !to.IsZero() {
		return errors.New("a map cannot be made again")
	}
	return inDir(path, func(dir *durable.Dir, name string) error {
		return errors.Join(dir.Remove(next+name), dir.Remove(name))
	})
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

// stage creates a map, whose id is recorded before it is pinned.
func stage(path string, spec *ebpf.MapSpec) (*ledger.Staged, error) {
	dir, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, remedy.File(err)
	}
	spec = spec.Copy()
	spec.Pinning = ebpf.PinNone
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	discard := func() {
		_ = m.Close()
		_ = dir.Close() // nothing is written through it
	}
	made, err := stateOf(m)
	if err != nil {
		discard()
		return nil, err
	}
	return &ledger.Staged{State: made, Discard: discard, Commit: func(context.Context) error {
		defer discard()
		return remedy.File(pinIn(dir, filepath.Base(path), m))
	}}, nil
}

// pinIn pins a map. One that is there is replaced by a rename; one that appears meanwhile is
// not.
func pinIn(dir *durable.Dir, name string, m *ebpf.Map) error {
	if _, err := dir.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return m.Pin(at(dir, name))
	} else if err != nil {
		return err
	}
	if err := m.Pin(at(dir, next+name)); err != nil {
		return err
	}
	return dir.Rename(next+name, name)
}

func stateOf(m *ebpf.Map) (ledger.State, error) {
	info, err := m.Info()
	if err != nil {
		return ledger.State{}, fmt.Errorf("ask for the id of a map: %w", err)
	}
	id, ok := info.ID()
	if !ok {
		return ledger.State{}, errors.New("the kernel reports no id of a map")
	}
	s := mapState(shape(info.Type, info.KeySize, info.ValueSize, info.MaxEntries, info.Flags))
	s.Identity = strconv.FormatUint(uint64(id), 10)
	return s, nil
}

// mapState is of a map, whose content does not count.
func mapState(shape string) ledger.State {
	return ledger.State{Type: typeMap, Value: shape}.WithContent(nil)
}

func shape(kind ebpf.MapType, key, value, entries, flags uint32) string {
	return fmt.Sprintf("%v of %d entries, keys of %d bytes, values of %d, flags %#x", kind, entries, key, value, flags)
}
