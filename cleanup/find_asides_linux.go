// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
	"github.com/slipway-dev/slipway/internal/cniconf"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/input"
)

// asideObject is a configuration that was set aside.
type asideObject struct {
	fileObject
	at   filetree.Location
	name string // that it gets back, in the same directory
}

// asides returns the files that were set aside, in the order of SetAside and of their
// original names; of one name the highest number first, which is the latest.
func (o *owned) asides(ctx context.Context) ([]aside, error) {
	var out []aside
	var errs failure.Set
	for _, pattern := range o.SetAside {
		dir, suffix := filepath.Dir(pattern), strings.TrimPrefix(filepath.Base(pattern), "*")
		var found []aside
		names, err := input.ReadNames(ctx, dir, func(name string) bool {
			_, ok := parseAside(name, suffix)
			return ok
		})
		errs.Add(filetree.NotThere(err))
		for _, name := range names {
			a, _ := parseAside(name, suffix)
			a.dir = dir
			found = append(found, a)
		}
		sort.SliceStable(found, func(i, j int) bool {
			a, b := found[i], found[j]
			return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(b.number, a.number)) < 0
		})
		out = append(out, found...)
	}
	return out, errs.Join()
}

// findAsides lists configurations of others that were set aside. Of several of
// one name the youngest gets it.
func findAsides(ctx context.Context, s *search) error {
	asides, err := s.own.asides(ctx)
	var errs failure.Set
	errs.Add(err)
	given := map[filetree.Location]string{}
	for _, a := range asides {
		// The agent's own configuration is removed as a file.
		if !s.own.ownsFile(a.original()) && !s.own.ownsFile(a.path()) {
			errs.Add(s.foundAside(ctx, a, given))
		}
	}
	return errs.Join()
}

// foundAside adds to given which file gets a name.
func (s *search) foundAside(ctx context.Context, a aside, given map[filetree.Location]string) error {
	t, err := filetree.Open(a.path())
	if t == nil {
		return err
	}
	defer t.Close()
	item := Item{
		Kind: kindAside, Object: a.path(), Detail: "gets its name back: " + a.name,
		object: asideObject{fileObject{a.path(), t.ID}, t.Location, a.name},
	}
	gets := filetree.Location{Dir: t.Dir, Name: a.name}
	_, twice := parseAside(a.name, a.suffix)
	switch {
	case s.keeps(item, t.Path), s.keeps(item, filepath.Join(filepath.Dir(t.Path), a.name)), s.isNoFile(item, t):
	case twice:
		s.leave(item, "it was set aside twice")
	case exists(a.original()):
		s.leave(item, a.name+" exists")
	case given[gets] != "":
		s.leave(item, given[gets]+", set aside after it, gets the name "+a.name)
	default:
		why, err := s.staysAside(ctx, a)
		if err != nil {
			return err
		}
		if why != "" {
			s.leave(item, why)
			return nil
		}
		given[gets] = a.base
		s.found(item, s.stateDirsOf(t.Path)...)
	}
	return nil
}

// staysAside is why a configuration does not get its name back: no record says that it was
// in use. All are judged by what is there before any of them returns.
func (s *search) staysAside(ctx context.Context, a aside) (why string, err error) {
	if !cniconf.IsName(a.name) {
		return "", nil
	}
	dir, plugins := cniconf.Directory{Dir: a.dir}, append(s.own.cniDirs(), "/opt/cni/bin")
	raw, _ := dir.Read(ctx, a.base) // one that cannot be read is no network
	if missing := cniconf.Missing(cniconf.Types(a.name, raw), plugins); len(missing) > 0 {
		return cniconf.StaysAside(a.path(), a.name, missing), nil
	}
	names, err := dir.List(ctx, cniconf.IsName)
	for _, name := range names {
		raw, _ := dir.Read(ctx, name)
		types := cniconf.Types(name, raw)
		isNetwork := slices.ContainsFunc(types, func(t string) bool { return t != "loopback" }) && !isDefault(name)
		if name > a.name && isNetwork && s.stays(filepath.Join(a.dir, name)) && len(cniconf.Missing(types, plugins)) == 0 {
			return fmt.Sprintf("it would be read before the network of %s; %s", name, cniconf.Restore(a.path(), a.name)), nil
		}
	}
	return "", err
}

// isDefault reports whether a configuration comes with a container runtime, for nodes
// without an agent.
func isDefault(name string) bool {
	return isProtected(kindCNIFile, func(p protected) bool { return (p.has("podman") || p.has("cri-o")) && covers(p.name, name) })
}

// stays reports whether a file is not the agent's, or is kept.
func (s *search) stays(path string) bool {
	return !s.own.ownsFile(path) || s.keep.Keeps(filetree.ResolveParents(path))
}

func (o *owned) ownsFile(path string) bool {
	path = filetree.ResolveParents(path)
	for _, file := range o.Files {
		if filetree.ResolveParents(file) == path {
			return true
		}
	}
	return false
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// remove gives a configuration its name back, unless something has the name.
// After any other failure the files beside it are not removed.
func (o asideObject) remove(_ context.Context, r *removal) error {
	t, err := o.open()
	if t != nil {
		defer t.Close()
		err = t.Rename(o.name)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		r.unrestored[o.at.Dir] = o.at.Name
	}
	return err
}
