// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// dropInPlan is the work to do for a DropIn.
type dropInPlan struct {
	path     string
	content  []byte
	file     journal.State // the wanted one
	makeDir  bool
	write    bool
	refused  error        // why the file cannot be written
	own      []assignment // the file's, with the keys that other files exclude from globs
	others   []assignment // all files', as systemd would apply them
	dirs     []string     // of others
	changes  []Change     // of our keys
	beyond   []otherChange
	reloader Reloader // nil: none, or none that works
	how      string   // one line on how values get applied

	reloadErr error // why the effect of a reload is unknown
}

// otherChange is a value that a reload sets because of another file.
type otherChange struct {
	Change
	by string
}

// plan reads the file, the kernel and the other files. The plan is nil if nothing
// may be done; otherwise it is valid even with an error.
func (d DropIn) plan(ctx context.Context) (*dropInPlan, error) {
	p := &dropInPlan{path: d.path(), dirs: d.dirs()}
	var err error
	if p.content, err = d.content(ctx); err != nil {
		return nil, err
	}
	if err := p.lookAtFile(ctx, d); err != nil {
		return nil, err
	}
	p.others, _, _ = effective(ctx, p.dirs, p.path, p.content) // [DropIn.Advise] reports unreadable files
	p.own = slices.Concat(keepOff(p.others, p.path), d.assignments())
	return p, errors.Join(p.refused, p.lookAtValues(ctx, d))
}

// lookAtValues lists the changes of our keys and determines their writer.
func (p *dropInPlan) lookAtValues(ctx context.Context, d DropIn) (err error) {
	w := writer(d.Reload != nil)
	if p.changes, err = d.Kernel.diffBy(p.own, w); !p.any() {
		return err
	}
	reloadErr := p.howToReload(ctx, d)
	if w == aReloader && p.reloader == nil { // no other process writes the values that this one may not
		if p.changes, err = d.Kernel.diff(p.own); !p.any() {
			p.how = ""
		}
	}
	return errors.Join(err, reloadErr)
}

func (d DropIn) assignments() []assignment {
	as := assignments(d.Settings)
	for i := range as {
		as[i].File = d.path()
	}
	return as
}

// keepOff turns the explicit keys of files other than path into exclusions: our
// globs do not set them, as systemd's would not.
func keepOff(as []assignment, path string) []assignment {
	var off []assignment
	for _, a := range as {
		if at, err := a.Key.path(); err == nil && a.File != path && !isGlob(at) {
			off = append(off, assignment{Setting: Setting{Key: a.Key, Exclude: true}, File: a.File, Line: a.Line})
		}
	}
	return off
}

func (p *dropInPlan) lookAtFile(ctx context.Context, d DropIn) error {
	switch dir, err := durable.OpenDir(d.dir()); {
	case errors.Is(err, fs.ErrNotExist) && d.ExistingDir:
		return fmt.Errorf("directory %s does not exist, and must not be made", d.dir())
	case errors.Is(err, fs.ErrNotExist):
		p.makeDir = true
	case err != nil:
		return err
	default:
		defer dir.Close()
	}
	now, err := journal.Snapshot(ctx, p.path)
	if err != nil {
		return fmt.Errorf("look at %s: %w", p.path, err)
	}
	if now.Type == "dir" || now.Type == "other" {
		return fmt.Errorf("%s is in the way: it is not a file; move it away", p.path)
	}
	if now.Type == "file" {
		p.content = keepMark(ctx, p.path, p.content)
	}
	sum := sha256.Sum256(p.content)
	p.file = journal.State{
		Type: "file", Mode: 0o644, UID: max(os.Geteuid(), 0), GID: now.GID, // the directory may decide the group
		Size: int64(len(p.content)), SHA256: hex.EncodeToString(sum[:]),
	}
	if now.Type == "" {
		p.file.GID = max(os.Getegid(), 0)
	}
	entry, ours, err := journal.From(ctx).Lookup(ctx, kindFile, p.path)
	p.write = !now.Same(p.file) || ours && !entry.Done // an earlier run did not complete
	if p.write {
		p.refused = refusedIn(d.dir(), p.path)
	}
	return err
}

// refusedIn returns an error if no process can make the file at path in dir, or dir
// itself. Missing permissions of this process alone do not count: the write will
// report them.
func refusedIn(dir, path string) error {
	dir, err := durable.Writable(dir)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("%s is not written: %w: %s: %w", path, ErrReadOnlyDir, dir, remedy.File(err))
	}
	return nil
}

// howToReload determines how the values get applied, and what else this changes.
func (p *dropInPlan) howToReload(ctx context.Context, d DropIn) error {
	if d.Reload == nil {
		return nil
	}
	how, err := d.Reload.Reloading(ctx)
	if errors.Is(err, ErrNoSystemd) {
		p.how = fmt.Sprintf("set the values directly, without a reload: %v", err)
		return nil
	}
	if err != nil {
		p.reloadErr = fmt.Errorf("reload: %w", err)
		return p.reloadErr
	}
	p.how, p.reloader = how, d.Reload
	return p.lookBeyond(d.Kernel)
}

// lookBeyond lists the changes that a reload makes besides our keys. Like systemd,
// it skips keys that cannot be read, or that no process can write.
func (p *dropInPlan) lookBeyond(k Kernel) error {
	ours := map[string]bool{}
	targets, _ := expand(k.files(), p.own)
	for _, t := range targets {
		ours[t.path] = true
	}
	targets, _ = expand(k.files(), p.others)
	by := map[Key]string{}
	var changes []Change
	for _, t := range targets {
		t.IgnoreFailure = true
		if c, _ := k.differs(t, aReloader); c != nil && !ours[t.path] {
			c.ignore = false
			by[c.Key] = fmt.Sprintf("by %s:%d", t.File, t.Line)
			changes = append(changes, *c)
		}
	}
	changes, err := k.guardRouters(changes)
	p.beyond = nil
	for _, c := range changes {
		p.beyond = append(p.beyond, otherChange{c, by[c.Key]})
	}
	return err
}

func (p *dropInPlan) any() bool { return p.write || len(p.changes) > 0 }

func (p *dropInPlan) lines() []string {
	var all []string
	if p.makeDir {
		all = append(all, "make directory "+filepath.Dir(p.path))
	}
	if p.write {
		all = append(all, "write "+p.path)
	}
	if p.how != "" {
		all = append(all, p.how)
	}
	all = append(all, lines(p.changes)...)
	for _, c := range p.beyond {
		all = append(all, strings.TrimSuffix(c.String()+", "+c.by, ", "))
	}
	return all
}

// wishes returns the file and its values, which it sets at each boot.
func (p *dropInPlan) wishes(ctx context.Context, k Kernel) ([]journal.Wish, error) {
	j := journal.From(ctx)
	lasts, err := p.lasts(ctx, j)
	wishes := k.wishes(j, p.own, p.changes)
	for i := range wishes {
		wishes[i].Lasting = lasts
	}
	file := journal.Wish{Entry: journal.Entry{Kind: kindFile, Object: p.path, After: p.file}, Met: !p.write, Adoptable: true, Claim: true}
	return append(wishes, file), err
}

func (p *dropInPlan) checkWishes(ctx context.Context, k Kernel) ([]string, error) {
	wishes, err := p.wishes(ctx, k)
	if err != nil {
		return nil, err
	}
	return journal.From(ctx).CheckWishes(ctx, wishes...)
}

func (p *dropInPlan) wish(ctx context.Context, k Kernel) error {
	wishes, err := p.wishes(ctx, k)
	if err != nil {
		return err
	}
	return journal.From(ctx).Wish(ctx, wishes...)
}
