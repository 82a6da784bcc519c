// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
	"github.com/slipway-dev/slipway/internal/cniconf"
	"github.com/slipway-dev/slipway/internal/failure"
)

// fileObject is a file, or a directory.
type fileObject struct {
	path string
	id   filetree.Inode
}

// findFiles lists owned files, configurations first, since a plugin goes after those that
// name it, and else in the order in which they are given; then those that were set aside.
func findFiles(ctx context.Context, s *search) error {
	var errs failure.Set
	for _, confs := range []bool{true, false} {
		for _, path := range s.own.Files {
			if isConf := s.own.isCNIDir(filepath.Dir(path)) && cniconf.IsName(path); isConf == confs {
				errs.Add(s.foundFile(ctx, path, ""))
			}
		}
	}
	asides, err := s.own.asides(ctx)
	errs.Add(err)
	for _, a := range asides {
		if s.own.ownsFile(a.original()) {
			errs.Add(s.foundFile(ctx, a.path(), "the agent's own, set aside"))
		}
	}
	return errs.Join()
}

func (s *search) foundFile(ctx context.Context, path, detail string) error {
	t, err := filetree.Open(path)
	if t == nil {
		return err
	}
	defer t.Close()
	item := Item{Kind: kindFile, Object: path, Detail: detail, object: fileObject{path, t.ID}}
	if s.keeps(item, t.Path) || s.isNoFile(item, t) {
		return nil
	}
	return s.foundOwn(ctx, item)
}

// isNoFile lists as left what is no file that could be removed. It is true, too, of one seen
// before.
func (s *search) isNoFile(item Item, t *filetree.Tree) bool {
	switch {
	case s.again(t):
	case t.Mount:
		s.leave(item, "something is mounted on it")
	case t.IsDir:
		s.leave(item, "it is a directory")
	default:
		return false
	}
	return true
}

// foundOwn leaves a plugin that configurations need, and tells which file sandboxes need.
func (s *search) foundOwn(ctx context.Context, item Item) error {
	path := item.Object
	switch err := cmp.Or(s.own.needed(ctx, path, s.stays), s.neededBack(ctx, path)); {
	case errors.Is(err, ledger.ErrNeeded):
		s.leave(item, err.Error())
		return nil
	case err != nil:
		return err
	}
	if err := s.inUse(ctx, path); err != nil {
		item.Detail = "kept: " + err.Error()
	}
	s.found(item, s.stateDirsOf(filetree.ResolveParents(path))...)
	return nil
}

// inUse returns an error if sandboxes need a file of CNI for their deletion.
func (n *node) inUse(ctx context.Context, path string) error {
	if n.strandPods || !n.own.isCNIDir(filepath.Dir(path)) {
		return nil
	}
	return n.results.FileInUse(ctx, path)
}

// needed returns an error that matches [ledger.ErrNeeded] if a configuration that stays
// names the plugin: pods would get no network any more.
func (o *owned) needed(ctx context.Context, plugin string, stays func(conf string) bool) error {
	if !o.isPlugin(plugin) {
		return nil
	}
	for _, dir := range o.cniDirs() {
		if err := (cniconf.Directory{Dir: dir}).Need(ctx, plugin, stays); err != nil {
			return err
		}
	}
	return nil
}

// neededBack is needed for the configurations that get their names back.
func (s *search) neededBack(ctx context.Context, plugin string) error {
	for _, item := range s.inv.Items {
		a, ok := item.object.(asideObject)
		if !ok || !s.own.isPlugin(plugin) {
			continue
		}
		dir := cniconf.Directory{Dir: filepath.Dir(a.path)}
		raw, err := dir.Read(ctx, filepath.Base(a.path))
		if err := dir.Needs(ctx, plugin, filepath.Join(dir.Dir, a.name), raw, err); err != nil {
			return err
		}
	}
	return nil
}

// isPlugin reports whether a file of the agent is a plugin.
func (o *owned) isPlugin(path string) bool {
	return o.isCNIDir(filepath.Dir(path)) && !cniconf.IsName(path)
}

// cniDirs lists the directories for CNI in which something is owned or searched.
func (o *owned) cniDirs() (dirs []string) {
	for _, path := range slices.Concat(o.Files, o.SetAside) {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, e := range o.Exceptions {
		if e.Kind == exceptCNIDir {
			dirs = append(dirs, e.Name)
		}
	}
	slices.Sort(dirs)
	return slices.DeleteFunc(slices.Compact(dirs), func(dir string) bool { return !o.isCNIDir(dir) })
}

// remove removes no file beside a configuration that was set aside and did not
// get its name back: the file may be the last configuration that is loaded.
func (o fileObject) remove(ctx context.Context, r *removal) error {
	t, err := o.open()
	if t == nil {
		return err
	}
	defer t.Close()
	if aside := r.unrestored[t.Dir]; aside != "" {
		return fmt.Errorf("left as it is, because %s beside it did not get its name back", aside)
	}
	if err := r.inUse(ctx, o.path); err != nil {
		return fmt.Errorf("%s is kept: %w", o.path, err)
	}
	isThere := func(string) bool { return true }
	if err := r.own.needed(ctx, o.path, isThere); err != nil {
		return fmt.Errorf("%s stays: %w", o.path, err)
	}
	return t.Remove()
}

// open is look, with an error where something is mounted on the file.
func (o fileObject) open() (*filetree.Tree, error) {
	t, err := o.look()
	if t != nil && t.Mount {
		t.Close()
		return nil, errors.New("something is mounted on it; left as it is")
	}
	return t, err
}

// look returns nil, and no error, where the file is gone.
func (o fileObject) look() (*filetree.Tree, error) {
	t, err := filetree.Open(o.path)
	if t != nil && t.ID != o.id {
		t.Close()
		return nil, failure.ErrReplaced
	}
	return t, err
}
