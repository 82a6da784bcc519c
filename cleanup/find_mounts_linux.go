// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
	"github.com/slipway-dev/slipway/internal/failure"
)

// bpffsObject is a mount of a BPF file system, which is removed only if it holds no pins
// of other owners: objects pinned only there are removed with it.
type bpffsObject struct{ mountObject }

// findMounts lists the mounts in state directories, and those that a rule
// describes.
func findMounts(ctx context.Context, s *search) error {
	all, err := s.mountPoints()
	if err != nil {
		return err
	}
	var errs failure.Set
	listed := map[mountObject]bool{}
	for _, dir := range s.own.StateDirs {
		t, err := filetree.Open(dir)
		if t == nil {
			errs.Add(err)
			continue
		}
		t.Close()
		for _, m := range mountsBelow(all, t.Path) {
			if !listed[m.mountObject] && !s.keeps(m.item(), m.path) {
				s.foundMount(m, m.mountObject)
			}
			listed[m.mountObject] = true
		}
	}
	for _, rule := range s.own.Mounts {
		for _, m := range mountsOn(all, rule) {
			if !listed[m.mountObject] && !s.keeps(m.item(), m.path) {
				errs.Add(s.foundAgentMount(ctx, m))
			}
			listed[m.mountObject] = true
		}
	}
	return errs.Join()
}

// mountsOn returns the mounts that a rule describes, the topmost first.
func mountsOn(all []mountPoint, rule MountRule) (out []mountPoint) {
	path := filetree.ResolveParents(rule.Path)
	for _, m := range slices.Backward(all) {
		if m.path == path && m.fstype == rule.Type {
			out = append(out, m)
		}
	}
	return out
}

func (m mountPoint) item() Item { return Item{Kind: kindMount, Object: m.path, Detail: m.fstype} }

func (s *search) foundMount(m mountPoint, o any) {
	item := m.item()
	item.object = o
	s.found(item, s.stateDirsOf(m.path)...)
}

func (s *search) foundAgentMount(ctx context.Context, m mountPoint) error {
	if m.fstype != fstypeBPF {
		s.foundMount(m, m.mountObject)
		return nil
	}
	foreign, err := s.pins.foreign(ctx, m.path)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", m.path, err)
	case foreign != "":
		s.leave(m.item(), "bpf; holds a pin of another owner: "+foreign)
	default:
		s.foundMount(m, bpffsObject{m.mountObject})
	}
	return nil
}

// foreign returns a pin in a BPF file system that is not owned, "" if there is none.
// Files that the kernel itself creates are no pins.
func (p *pins) foreign(ctx context.Context, root string) (string, error) {
	if !isBPFFS(root) {
		return "", nil // something else is mounted over it
	}
	owned := map[string]bool{}
	if err := p.walk(ctx, func(e filetree.Entry) { owned[e.Path()] = true }); err != nil {
		return "", err
	}
	t, err := filetree.Open(root)
	if t == nil {
		return "", err
	}
	defer t.Close()
	foreign := ""
	_, err = t.Walk(ctx, nil, nil, func(e filetree.Entry) (bool, error) {
		kernels := e.Name() == "progs.debug" || e.Name() == "maps.debug"
		if !e.IsDir && !kernels && foreign == "" && !owned[e.Path()] {
			foreign = strings.TrimPrefix(e.Path(), t.Path+"/")
		}
		return false, nil
	})
	return foreign, err
}

func (o mountObject) remove(context.Context, *removal) error { return o.unmount() }

func (o bpffsObject) remove(ctx context.Context, r *removal) error {
	foreign, err := r.pins.foreign(ctx, o.path)
	if err != nil {
		return err
	}
	if foreign != "" {
		return errors.New("it now holds a pin of another owner; left as it is: " + foreign)
	}
	return o.unmount()
}
