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
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/pin"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/bpfattach"
	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
	"github.com/slipway-dev/slipway/internal/failure"
)

const fstypeBPF = "bpf"

// pinObject is a pin or a directory of pins.
type pinObject struct{ fileObject }

// pins are the pins with names that match a pattern, below the roots of BPF file
// systems.
type pins struct{ roots, patterns []string }

// pinRoots returns where pins are looked for.
func pinRoots(roots []string, mounts []MountRule) []string {
	if roots = slices.Clone(roots); len(roots) == 0 {
		roots = []string{defaultBPFRoot}
	}
	for _, rule := range mounts {
		if rule.Type == fstypeBPF && !slices.Contains(roots, rule.Path) {
			roots = append(roots, rule.Path)
		}
	}
	return roots
}

// walk calls visit for each owned pin and each owned directory of pins that can become
// empty; mounts among them are not removed.
func (p *pins) walk(ctx context.Context, visit func(filetree.Entry)) error {
	var errs failure.Set
	for _, root := range p.roots {
		if !isBPFFS(root) {
			continue
		}
		for _, pattern := range p.patterns {
			errs.Add(walkPinPattern(ctx, filepath.Join(root, path.Dir(pattern)), path.Base(pattern), visit))
		}
	}
	return errs.Join()
}

func isBPFFS(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && uint32(fs.Type) == unix.BPF_FS_MAGIC
}

// walkPinPattern visits the entries of dir that match pattern.
func walkPinPattern(ctx context.Context, dir, pattern string, visit func(filetree.Entry)) error {
	t, err := filetree.Open(dir)
	if t == nil {
		return err
	}
	defer t.Close()
	if !isBPFFS(t.Path) {
		return nil
	}
	match := func(name string) bool { ok, _ := path.Match(pattern, name); return ok }
	_, err = t.Walk(ctx, nil, match, func(e filetree.Entry) (bool, error) {
		if !e.Full {
			visit(e)
		}
		return e.Full || e.Mount, nil
	})
	return err
}

func findPins(ctx context.Context, s *search) error {
	var roots []string
	for _, root := range s.pins.roots {
		roots = append(roots, filetree.ResolveParents(root))
	}
	err := s.pins.walk(ctx, func(e filetree.Entry) {
		path := e.Path()
		item := Item{Kind: kindPin, Object: path, object: pinObject{fileObject{path, e.ID}}}
		if e.Mount {
			s.leave(item, "something is mounted on it")
			return
		}
		if e.IsDir {
			item.Kind = kindPinDir
		}
		var with []string
		for _, root := range roots {
			if strings.HasPrefix(path, root+"/") {
				with = append(with, nameOf(kindMount, root))
			}
		}
		s.found(item, with...)
	})
	return errors.Join(err, s.joinPins())
}

// joinPins lets programs that are attached go with their pins: a bpf_link may end with its
// pin. All pins of a program go with the first place that it is attached to, and one of them
// with each other place.
func (s *search) joinPins() error {
	if len(s.attached) == 0 {
		return nil
	}
	pinned, err := s.programs.pinned()
	if pinned == nil {
		return err
	}
	for program, paths := range pinned.paths {
		var names []string
		for _, path := range paths {
			names = append(names, nameOf(kindPin, path))
		}
		for _, i := range s.attached[program] {
			s.with[i], names = slices.Concat(names, s.with[i]), names[:1]
		}
	}
	return err
}

// pinnedObjects are the maps and programs that are pinned, and the programs of
// bpf_links that are.
type pinnedObjects struct {
	maps     map[ebpf.MapID]bool
	programs map[ebpf.ProgramID]bool
	paths    map[bpfattach.Program][]string
}

// objects returns the pinned objects that could be opened.
func (p *pins) objects() (*pinnedObjects, error) {
	out := &pinnedObjects{map[ebpf.MapID]bool{}, map[ebpf.ProgramID]bool{}, map[bpfattach.Program][]string{}}
	var errs failure.Set
	err := p.walk(context.Background(), func(e filetree.Entry) {
		if !e.Mount && !e.IsDir {
			errs.Add(out.add(e.Path()))
		}
	})
	errs.Add(err)
	return out, errs.Join()
}

func (p *pinnedObjects) add(path string) error {
	object, err := pin.Load(path, &ebpf.LoadPinOptions{ReadOnly: true})
	if errors.Is(err, unix.EINVAL) {
		object, err = pin.Load(path, nil) // a bpf_link cannot be opened read-only
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open pin: %w", err)
	}
	defer object.Close()
	var program bpfattach.Program
	switch object := object.(type) {
	case *ebpf.Map:
		var info *ebpf.MapInfo
		if info, err = object.Info(); err == nil {
			id, _ := info.ID()
			p.maps[id] = true
		}
	case *ebpf.Program:
		var info *ebpf.ProgramInfo
		if info, err = object.Info(); err == nil {
			program.ID, _ = info.ID()
		}
	case link.Link:
		var info *link.Info
		if info, err = object.Info(); err == nil {
			program = bpfattach.Program{ID: info.Program, Link: info.ID}
		}
	}
	if err != nil {
		return fmt.Errorf("look at pin %s: %w", path, err)
	}
	if program.ID != 0 {
		p.programs[program.ID] = true
		p.paths[program] = append(p.paths[program], path)
	}
	return nil
}

// remove removes a pin, or a directory of pins that is empty by now.
func (p pinObject) remove(context.Context, *removal) error {
	t, err := p.open()
	if t == nil {
		return err
	}
	defer t.Close()
	return t.Remove()
}
