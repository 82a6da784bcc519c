// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const fstypeBPF = "bpf"

// bpfMountRef identifies a BPF file system that goes only if nobody else has
// pins in it: what is pinned there and nowhere else goes with it.
type bpfMountRef struct{ mountRef }

// pinRoots returns where pins are looked for.
func (s *session) pinRoots() []string {
	roots := slices.Clone(s.bpfRoots())
	for _, rule := range s.own.Mounts {
		if rule.Type == fstypeBPF && !slices.Contains(roots, rule.Path) {
			roots = append(roots, rule.Path)
		}
	}
	return roots
}

// findMounts lists the mounts in state directories, and those that a rule
// describes.
func findMounts(ctx context.Context, s *session) error {
	all, err := s.mountPoints()
	if err != nil {
		return err
	}
	var errs errorSet
	listed := map[mountRef]bool{}
	for _, dir := range s.own.StateDirs {
		t, err := openTree(dir)
		if t == nil {
			errs.add(err)
			continue
		}
		t.close()
		for _, m := range mountsBelow(all, t.path) {
			if !listed[m.mountRef] && !s.kept.holds(m.path) {
				s.foundMount(m, m.mountRef)
				listed[m.mountRef] = true
			}
		}
	}
	for _, rule := range s.own.Mounts {
		for _, m := range mountsOn(all, rule) {
			if listed[m.mountRef] || s.kept.holds(m.path) {
				continue
			}
			listed[m.mountRef] = true
			errs.add(s.foundAgentMount(ctx, m))
		}
	}
	return errs.join()
}

// mountsOn returns the mounts that a rule describes, the topmost first.
func mountsOn(all []mountPoint, rule MountRule) (out []mountPoint) {
	path := resolveParents(rule.Path)
	for _, m := range slices.Backward(all) {
		if m.path == path && m.fstype == rule.Type {
			out = append(out, m)
		}
	}
	return out
}

func (s *session) foundMount(m mountPoint, ref any) {
	s.found(Item{Kind: kindMount, Object: m.path, Detail: m.fstype, ref: ref})
}

func (s *session) foundAgentMount(ctx context.Context, m mountPoint) error {
	if m.fstype != fstypeBPF {
		s.foundMount(m, m.mountRef)
		return nil
	}
	foreign, err := s.foreignPin(ctx, m.path)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", m.path, err)
	case foreign != "":
		s.leave(Item{Kind: kindMount, Object: m.path, Detail: "bpf; a pin of somebody else's is in it: " + foreign})
	default:
		s.foundMount(m, bpfMountRef{m.mountRef})
	}
	return nil
}

// foreignPin returns a pin in a BPF file system that is not owned, "" if there
// is none. What the kernel itself puts there is no pin.
func (s *session) foreignPin(ctx context.Context, root string) (string, error) {
	if !isBPFFS(root) {
		return "", nil // something else is mounted over it
	}
	owned := map[string]bool{}
	if err := s.walkPins(ctx, func(e entry) { owned[resolveParents(e.path())] = true }); err != nil {
		return "", err
	}
	t, err := openTree(root)
	if t == nil {
		return "", err
	}
	defer t.close()
	foreign := ""
	_, err = t.walk(ctx, nil, func(e entry) (bool, error) {
		kernels := e.name == "progs.debug" || e.name == "maps.debug"
		if !e.dir && !kernels && foreign == "" && !owned[e.path()] {
			foreign = strings.TrimPrefix(e.path(), t.path+"/")
		}
		return false, nil
	})
	return foreign, err
}

func removeMount(ctx context.Context, s *session, item Item) error {
	switch ref := item.ref.(type) {
	case mountRef:
		return unmount(ref)
	case bpfMountRef:
		foreign, err := s.foreignPin(ctx, ref.path)
		if err != nil {
			return err
		}
		if foreign != "" {
			return errors.New("a pin of somebody else's is in it by now; left as it is: " + foreign)
		}
		return unmount(ref.mountRef)
	}
	return fmt.Errorf("identity of type %T", item.ref)
}
