// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/remedy"
	"github.com/slipway-dev/slipway/mount"
)

const dirMode = 0o755

// sourcePrefix starts the source of every mount that is made here. The agent, if it has a
// name, and the journal, if there is one, follow; the rest is random, since the kernel
// reuses its own identifiers of mounts.
const sourcePrefix = "slipway-"

func newSource(m journal.Mark) string {
	source := sourcePrefix
	if m.Journal != "" {
		source += strings.TrimPrefix(m.Agent+"-"+m.Journal+"-", "-")
	}
	return source + strings.ToLower(rand.Text()[:16])
}

// markOf parses the mark in a source; ours is false if the mount was not made here.
func markOf(source string) (m journal.Mark, ours bool) {
	rest, ours := strings.CutPrefix(source, sourcePrefix)
	parts := strings.Split(rest, "-")
	if n := len(parts); n > 1 {
		m = journal.Mark{Agent: strings.Join(parts[:n-2], "-"), Journal: parts[n-2]}
	}
	return m, ours
}

func (w Wanted) files() journal.Files { return journal.Files{Kind: w.Kind} }

func mountKind(kind string) string { return kind + "/mount" }

// attach makes the directories that the place misses and mounts on it, noting both in
// the journal. If it returns an error that matches EBUSY, another process made such a
// mount meanwhile.
func (w Wanted) attach(ctx context.Context, k mount.Mounter, f Found) error {
	record := journal.From(ctx)
	mark, err := record.Mark()
	if err != nil {
		return err
	}
	e := journal.Entry{
		Kind: mountKind(w.Kind), Object: f.Path, Boot: record.Boot(),
		After: journal.State{Type: "mount", Value: newSource(mark)},
	}
	_, known, err := record.Lookup(ctx, e.Kind, e.Object)
	if err != nil {
		return err
	}
	if err := w.prepare(ctx, f.Place, e); err != nil {
		return err
	}
	if err = w.mount(k, e.After.Value, f); err == nil {
		return record.Complete(ctx, e)
	}
	err = hint(w.FSType, err)
	if !known { // else a mount of an earlier run may still be there
		err = errors.Join(err, record.Forget(ctx, e))
	}
	if !errors.Is(err, syscall.EBUSY) { // else another program's mount is on them
		err = errors.Join(err, w.removeDirs(ctx, f.Place))
	}
	return err
}

// mount mounts, in the place of what Clear unmounts, which a kernel that can does last.
func (w Wanted) mount(k mount.Mounter, source string, f Found) error {
	if f.Clear == nil {
		return k.Mount(source, f.Path, w.FSType, w.Options)
	}
	replacer, ok := k.(interface {
		Replace(source, target, fstype, options string, clear func() error) error
	})
	if ok {
		return replacer.Replace(source, f.Path, w.FSType, w.Options, f.Clear)
	}
	if err := f.Clear(); err != nil {
		return err
	}
	return k.Mount(source, f.Path, w.FSType, w.Options)
}

// prepare makes the directories and begins the journal entry.
func (w Wanted) prepare(ctx context.Context, p Place, e journal.Entry) error {
	err := dirHint(p.Path, w.files().MkdirAll(ctx, journal.From(ctx), p.Path, dirMode))
	if err == nil {
		err = journal.From(ctx).Begin(ctx, e)
	}
	if err != nil {
		// Anything that cannot be removed or forgotten now is a directory begun in the
		// journal, or nothing: Revert handles it. The first error is more useful.
		_ = w.removeDirs(ctx, p)
	}
	return err
}

// removeDirs removes the directories that were made for p, unless they are in use.
func (w Wanted) removeDirs(ctx context.Context, p Place) error {
	for _, dir := range slices.Backward(p.Missing) {
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			return nil // another program's
		}
		if err := durable.Remove(dir); err != nil {
			return nil // in use
		}
		if err := journal.From(ctx).Forget(ctx, journal.Entry{Kind: w.Kind + "/dir", Object: dir}); err != nil {
			return err
		}
	}
	return nil
}

// record records an existing mount: it completes the entry of a mount whose process was
// killed before it could, and makes a mount of another agent stay until neither agent
// wants it.
func (w Wanted) record(ctx context.Context, k mount.Mounter, p Place) error {
	j := journal.From(ctx)
	e, known, err := j.Lookup(ctx, mountKind(w.Kind), p.Path)
	switch {
	case err != nil:
		return err
	case !known && j.Alone():
		return j.Wish(ctx, w.wish(p))
	case known && e.Done:
		return nil
	}
	on, err := mountsOn(k, p.Path)
	last := len(on) - 1
	switch {
	case err != nil:
		return err
	case known && (last < 0 || find(k, on, w.FSType, e.After.Value) != last):
		return nil
	case known:
		return j.Complete(ctx, e)
	}
	// The present one, which need not be the one that the other agent has recorded.
	wish := w.wish(p)
	if last >= 0 && strings.HasPrefix(on[last].Source, sourcePrefix) {
		wish.After.Value = on[last].Source
	}
	return j.Wish(ctx, wish)
}

func (w Wanted) wish(p Place) journal.Wish {
	return journal.Wish{Entry: journal.Entry{Kind: mountKind(w.Kind), Object: p.Path, After: journal.State{Type: "mount"}}, Met: true}
}

// find returns the index of the mount on a path that was made with the source; -1 if
// there is none. If the kernel took no source for a bpffs, the visible one is recognised
// by a directory of that name.
func find(k mount.Mounter, on []mountinfo.Mount, fstype, source string) int {
	for i, m := range on {
		if m.FSType == fstype && m.Source == source {
			return i
		}
	}
	last := len(on) - 1
	if last < 0 || on[last].FSType != fstype || source == "" {
		return -1
	}
	f, err := k.Open(filepath.Join(on[last].Point, source))
	if err != nil {
		return -1
	}
	_ = f.Close() // it was only looked at
	return last
}

func mountsOn(k mount.Mounter, path string) ([]mountinfo.Mount, error) {
	infos, err := Mounts(k)
	return mountinfo.On(infos, path), err
}

// permission returns the error that mounting would meet for want of a capability.
func permission(fstype string) error {
	if len(remedy.Missing(remedy.SysAdmin)) == 0 {
		return nil
	}
	return hint(fstype, syscall.EPERM)
}

// hint names the cause if the kernel's error does not.
func hint(fstype string, err error) error {
	if errors.Is(err, syscall.ENODEV) {
		return remedy.Add(err, fmt.Sprintf("this kernel has no %s file system: %s", fstype,
			map[string]string{"bpf": "CONFIG_BPF_SYSCALL", "cgroup2": "CONFIG_CGROUPS"}[fstype]))
	}
	return remedy.Capabilities(err, map[string]string{"bpf": "in the initial user namespace"}[fstype], remedy.SysAdmin)
}

func dirHint(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("make directory %s: %w", path, remedy.File(err))
}
