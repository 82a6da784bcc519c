// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/pin"
	"golang.org/x/sys/unix"
)

// pinRef identifies a pin or a directory of pins.
type pinRef struct {
	path string
	id   inode
	dir  bool
}

// pinnedObjects are the maps and programs that are pinned at owned places, and
// the programs of bpf_links that are.
type pinnedObjects struct {
	maps     map[ebpf.MapID]bool
	programs map[ebpf.ProgramID]bool
}

// walkPins calls visit for each owned pin and each owned directory of pins
// that can become empty; what is mounted among them stays.
func (s *session) walkPins(ctx context.Context, visit func(entry)) error {
	var errs errorSet
	for _, root := range s.pinRoots() {
		if !isBPFFS(root) {
			continue
		}
		for _, pattern := range s.own.Pins {
			errs.add(walkPinPattern(ctx, filepath.Join(root, path.Dir(pattern)), path.Base(pattern), visit))
		}
	}
	return errs.join()
}

func isBPFFS(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && uint32(fs.Type) == unix.BPF_FS_MAGIC
}

// walkPinPattern visits what matches pattern in dir.
func walkPinPattern(ctx context.Context, dir, pattern string, visit func(entry)) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	w := walker{
		visit: func(e entry) (bool, error) {
			if !e.full {
				visit(e)
			}
			return e.full || e.mount, nil
		},
		passOver: func(name string) bool {
			match, _ := path.Match(pattern, name)
			return !match
		},
	}
	_, err = w.walk(ctx, &level{name: dir, dir: fd})
	return err
}

func findPins(ctx context.Context, s *session) error {
	return s.walkPins(ctx, func(e entry) {
		item := Item{Kind: kindPin, Object: e.path()}
		if e.mount {
			item.Detail = "something is mounted on it"
			s.leave(item)
			return
		}
		if e.dir {
			item.Kind = kindPinDir
		}
		item.ref = pinRef{e.path(), e.id, e.dir}
		s.found(item)
	})
}

// pinnedObjects looks at the owned pins when first asked for.
func (s *session) pinnedObjects() (*pinnedObjects, error) {
	if s.pinned != nil {
		return s.pinned, nil
	}
	out := &pinnedObjects{map[ebpf.MapID]bool{}, map[ebpf.ProgramID]bool{}}
	var errs errorSet
	err := s.walkPins(context.Background(), func(e entry) {
		if !e.mount && !e.dir {
			errs.add(out.add(e.path()))
		}
	})
	errs.add(err)
	s.pinned = out
	return out, errs.join()
}

func (p *pinnedObjects) add(path string) error {
	object, err := pin.Load(path, &ebpf.LoadPinOptions{ReadOnly: true})
	if errors.Is(err, unix.EINVAL) {
		object, err = pin.Load(path, nil) // a bpf_link opens for both only
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open pin: %w", err)
	}
	defer object.Close()
	switch object := object.(type) {
	case *ebpf.Map:
		info, err := object.Info()
		if err != nil {
			return fmt.Errorf("look at pin %s: %w", path, err)
		}
		if id, ok := info.ID(); ok {
			p.maps[id] = true
		}
	case *ebpf.Program:
		info, err := object.Info()
		if err != nil {
			return fmt.Errorf("look at pin %s: %w", path, err)
		}
		if id, ok := info.ID(); ok {
			p.programs[id] = true
		}
	case link.Link:
		info, err := object.Info()
		if err != nil {
			return fmt.Errorf("look at pin %s: %w", path, err)
		}
		p.programs[info.Program] = true
	}
	return nil
}

// removePin removes a pin, or a directory of pins that is empty by now.
func removePin(_ context.Context, _ *session, item Item) error {
	ref, ok := item.ref.(pinRef)
	if !ok {
		return fmt.Errorf("identity of type %T", item.ref)
	}
	dir, err := os.OpenFile(filepath.Dir(ref.path), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	e, err := lookBelow(int(dir.Fd()), filepath.Base(ref.path))
	switch {
	case err != nil:
		return &os.PathError{Op: "open", Path: ref.path, Err: err}
	case e == nil:
		return nil
	case e.mount:
		return errors.New("something is mounted on it; left as it is")
	case e.id != ref.id:
		return errOther
	}
	return removing(ref.path, unlink(e.parent, e.name, e.dir))
}
