// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/cniconf"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/printable"
)

// inPlaceKind is the kind of plugins in configurations of others. An object is the plugin of a
// type in a directory's configurations, and no file: their owners rename, rewrite and replace
// these, and other agents set them aside.
const inPlaceKind = "cni-in-place"

// typeEntry is the type of its states. Value is the plugin's JSON in one form, and Identity has
// the names of the files that have it, and its text.
const typeEntry = "plugin"

// tries is how often a file is edited again if its owner has written it meanwhile.
const tries = 5

// entryObject names the plugin of a type in the configurations of dir. No type has a slash.
func entryObject(plugin, dir string) string { return plugin + " in " + dir }

func cutEntry(object string) (plugin, dir string) {
	plugin, dir, _ = strings.Cut(object, " in /")
	return plugin, "/" + dir
}

// inPlace is the kind for one installation. Without a config it has no target, as for an
// undoing: a plugin is replaced where it is.
type inPlace struct {
	config *Chained
	folder func(recorded) folder
	target string // the file that was the target at the last look
	taken  string // the object that was taken out last: what is still there of it is others'
}

func (p *inPlace) kind() *ledger.Kind {
	file := ledger.File()
	in := func(object string) string { _, dir := cutEntry(object); return filepath.Join(dir, "x") }
	return &ledger.Kind{
		Name: inPlaceKind, MayVanish: true, // it goes when its file's owner writes the next version
		Read: p.read, Write: p.write, Describe: p.describe,
		Met: func(now ledger.State, w ledger.Want) bool {
			return now.Value == w.To.Value && (p.config == nil || p.isOnlyInTarget(now))
		},
		Same: func(a, b ledger.State) bool { return a.Value == b.Value },
		Canonical: func(object string) (string, error) {
			path, err := file.Canonical(in(object))
			plugin, _ := cutEntry(object)
			return entryObject(plugin, filepath.Dir(path)), err
		},
		Owns:         func(object string) error { return ownsFile(file.Owns)(in(object)) },
		Permission:   func(ctx context.Context, object string) error { return mayWriteIn(ctx, in(object)) },
		EndsWithBoot: func(object string) bool { return file.EndsWithBoot(in(object)) },
		Sweep:        func(ctx context.Context, object string) error { return file.Sweep(ctx, in(object)) },
		Place:        func(object string) (string, string) { return filepath.Dir(in(object)), "" },
	}
}

// endOfNames is in no list of file names, whatever is in them.
const endOfNames = "//"

// entryState is the state of a plugin in the named files.
func entryState(text []byte, names ...string) ledger.State {
	return ledger.State{Type: typeEntry, Value: canonical(text), Identity: strings.Join(names, "/") + endOfNames + string(text)}
}

// canonical is one form of equal JSON values. Numbers keep their digits.
func canonical(text []byte) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return string(text)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(text)
	}
	return string(out)
}

// holders and textOf return what entryState has put in a state.
func holders(s ledger.State) []string {
	names, _, _ := strings.Cut(s.Identity, endOfNames)
	return strings.FieldsFunc(names, func(r rune) bool { return r == '/' })
}

func textOf(s ledger.State) []byte {
	_, text, _ := strings.Cut(s.Identity, endOfNames)
	return []byte(cmp.Or(text, s.Value))
}

// textIn is what comes back in a file of this name, perhaps set aside; nil: nothing. That of
// another file was only there.
func textIn(s ledger.State, name string) []byte {
	if !slices.ContainsFunc(holders(s), func(holder string) bool { return livesAs(holder) == livesAs(name) }) {
		return nil
	}
	return textOf(s)
}

// livesAs is the name of a file, before it was set aside.
func livesAs(name string) string { return append(origins(name), name)[0] }

// isOurs reports whether agents have ever left or wanted a plugin so. Any other is its file's
// owner's.
func isOurs(o ledger.Record) func(text []byte) bool {
	return func(text []byte) bool { return o.IsPast(entryState(text)) }
}

// isOnlyInTarget reports whether runtimes find the plugin in the target and nowhere else. What is
// set aside keeps it, for when it comes back.
func (p *inPlace) isOnlyInTarget(now ledger.State) bool {
	in := holders(now)
	return slices.Contains(in, p.target) && !slices.ContainsFunc(in, func(name string) bool { return name != p.target && isConfName(name) })
}

// read finds the agents' plugin, and whatever is in its place in the target. Without a target,
// one of others counts if there is none of the agents'.
func (p *inPlace) read(ctx context.Context, object string) (s ledger.State, err error) {
	files, err := readRecorded(ctx)
	if err != nil {
		return s, err
	}
	if p.config != nil {
		found, err := p.config.find(ctx, p.folder(files))
		if err != nil {
			return s, err
		}
		p.target = found.candidate.file
	}
	all, err := files.findEntries(ctx, object)
	isIn := func(e entry) bool { return e.isOurs || e.name == p.target }
	if p.config == nil && !slices.ContainsFunc(all, isIn) && p.taken != object {
		isIn = func(entry) bool { return true }
	}
	var names []string
	for _, e := range slices.DeleteFunc(all, func(e entry) bool { return !isIn(e) }) {
		if names = append(names, e.name); s.IsZero() || e.name == p.target {
			s = entryState(e.text)
			s.Changed = e.changed
		}
	}
	if !s.IsZero() {
		s.Identity = strings.Join(names, "/") + s.Identity
	}
	return s, err
}

// entry is a plugin in a file.
type entry struct {
	name                string
	text                []byte
	isOurs, isPublished bool
	changed             time.Time // the file
}

// findEntries finds the lists that have the plugin: first those that runtimes load, then those
// that were set aside, under whichever suffix. A list that has it as an agent of the node has
// published it is that agent's.
func (r recorded) findEntries(ctx context.Context, object string) (all []entry, err error) {
	plugin, dir := cutEntry(object)
	f, ours := cniconf.Folder{Dir: dir}, isOurs(r.entry(object))
	names, err := f.List(ctx, func(name string) bool {
		return !durable.IsTemporary(name) && slices.ContainsFunc(append(origins(name), name), cniconf.IsList)
	})
	slices.SortStableFunc(names, func(a, b string) int { return len(origins(a)) - len(origins(b)) })
	for _, name := range names {
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() > input.MaxNetwork {
			continue // it just goes; or a link is another file's name, or it is too large for a configuration
		}
		now, err := ledger.File().Read(ctx, path)
		if err != nil {
			return nil, err
		}
		isPublished := r.isPublished(path, now)
		if now.Type != "file" || isConfName(name) && isPublished {
			continue
		}
		raw, err := contentOf(ctx, path, now)
		if err != nil {
			continue
		}
		text, isOurs := listText(raw).find(plugin, ours)
		if !isOurs {
			text, _ = listText(raw).find(plugin, anyText)
		}
		if text != nil {
			all = append(all, entry{name, text, isOurs, isPublished, now.Changed})
		}
	}
	return all, err
}

// write puts the plugin into the target, and takes it out of all others that have it. Without a
// target it replaces it where it is.
func (p *inPlace) write(ctx context.Context, object string, to ledger.State) error {
	return again(func() error { return p.tryWrite(ctx, object, to) })
}

// again edits a file once more if its owner has written it meanwhile.
func again(edit func() error) (err error) {
	for range tries {
		if err = edit(); !errors.Is(err, errRewritten) {
			break
		}
	}
	return hint(err)
}

func (p *inPlace) tryWrite(ctx context.Context, object string, to ledger.State) error {
	now, err := p.read(ctx, object)
	if err != nil {
		return err
	}
	files, err := readRecorded(ctx)
	if err != nil {
		return err
	}
	plugin, dir := cutEntry(object)
	ours, in := isOurs(files.entry(object)), holders(now)
	if p.config != nil && !to.IsZero() {
		if err := editList(ctx, filepath.Join(dir, p.target), func(l listText) listText { return l.put(plugin, textOf(to)) }); err != nil {
			return err
		}
		in = slices.DeleteFunc(in, func(name string) bool { return name == p.target || !isConfName(name) })
		to = files.entry(object).Original // in all others
	}
	all, err := files.findEntries(ctx, object)
	if err != nil {
		return err
	}
	isBack := func(e entry) bool { return canonical(e.text) == to.Value || textIn(to, e.name) != nil }
	if p.config == nil && !to.IsZero() && !slices.ContainsFunc(all, isBack) && len(in) > 0 {
		to = entryState(textOf(to), in[0]) // its owner has renamed the file
	}
	for _, name := range in {
		if err := editList(ctx, filepath.Join(dir, name), func(l listText) listText { return l.replace(plugin, ours, textIn(to, name)) }); err != nil {
			return err
		}
	}
	if p.taken = ""; to.IsZero() {
		p.taken = object
	}
	return nil
}

// errRewritten means that a file's owner wrote it while it was being edited.
var errRewritten = errors.New("its owner has just written it")

// editList writes an edited list as the same file: of the same mode and owner, with the same
// extended attributes. Nothing is written if its owner has written it since it was read.
func editList(ctx context.Context, path string, edit func(listText) listText) error {
	before, err := ledger.File().Read(ctx, path)
	if err != nil {
		return err
	}
	if before.Type != "file" {
		return fmt.Errorf("%s is no regular file (any more), so no plugin is put into it, nor taken out", printable.Line(path))
	}
	raw, err := contentOf(ctx, path, before)
	if err != nil {
		return err
	}
	edited := edit(raw)
	if bytes.Equal(edited, raw) {
		return nil
	}
	staged, err := ledger.File().Stage(ctx, path, before.WithContent(edited))
	if err != nil {
		return err
	}
	if now, err := ledger.File().Read(ctx, path); err != nil || now.Identity != before.Identity || !now.Equal(before) {
		staged.Discard()
		return errors.Join(fmt.Errorf("%s: %w", printable.Line(path), errRewritten), err)
	}
	return staged.Commit(ctx)
}

func (p *inPlace) describe(object string, from, to ledger.State) string {
	plugin, dir := cutEntry(object)
	in := holders(from)
	if p.config != nil && !to.IsZero() {
		in = []string{p.target}
	}
	where := printable.Line(filepath.Join(dir, strings.Join(in, ", ")))
	if to.IsZero() {
		return fmt.Sprintf("take plugin %s out of %s", plugin, where)
	}
	return fmt.Sprintf("put plugin %s into %s", plugin, where)
}
