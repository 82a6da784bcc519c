// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"bytes"
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

// typeEntry is the type of its states. Value is the plugin's JSON, and Identity has the names of
// the files that have it.
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
	config    *Chained
	directory func(recorded) directory
	target    string // the file that was the target at the last look
}

func (p *inPlace) kind() *ledger.Kind {
	file := ledger.File()
	in := func(object string) string { _, dir := cutEntry(object); return filepath.Join(dir, "x") }
	return &ledger.Kind{
		Name: inPlaceKind, Rounds: true, // it goes when its file's owner writes the next version
		Read: p.read, Write: p.write, Describe: p.describe, Contents: p.contents,
		Met: func(now ledger.State, w ledger.Want) bool {
			isOnlyInTarget := slices.Contains(holders(now), p.target) && len(p.others(now)) == 0
			return canonical(now.Value) == canonical(w.To.Value) && (p.config == nil || isOnlyInTarget)
		},
		Same: func(ledger.State, ledger.State) bool { return true }, // whatever others have made of it
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

// entryState is the state of a plugin in the named files.
func entryState(text []byte, names ...string) ledger.State {
	return ledger.State{Type: typeEntry, Value: string(text), Identity: strings.Join(names, "/")}
}

// holders are the names of the files that have a plugin.
func holders(s ledger.State) []string {
	return strings.FieldsFunc(s.Identity, func(r rune) bool { return r == '/' })
}

// canonical is one form of equal JSON values. Numbers keep their digits.
func canonical(text string) string {
	var v any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return text
	}
	out, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return string(out)
}

// others are the files besides the target in which runtimes find the plugin. What is set aside
// keeps it, for when it comes back.
func (p *inPlace) others(now ledger.State) []string {
	return slices.DeleteFunc(holders(now), func(name string) bool { return name == p.target || !isConfName(name) })
}

// read finds the plugin, in the target first.
func (p *inPlace) read(ctx context.Context, object string) (s ledger.State, err error) {
	files, err := readRecorded(ctx)
	if err != nil {
		return s, err
	}
	if p.config != nil {
		found, err := p.config.find(ctx, p.directory(files))
		if err != nil {
			return s, err
		}
		p.target = found.candidate.file
	}
	all, err := files.findEntries(ctx, object)
	var names []string
	for _, e := range all {
		if names = append(names, e.name); s.IsZero() || e.name == p.target {
			s = entryState(e.text)
			s.Changed = e.changed
		}
	}
	s.Identity = strings.Join(names, "/")
	return s, err
}

// entry is a plugin in a file.
type entry struct {
	name    string
	text    []byte
	changed time.Time // the file
}

// findEntries finds the lists that have the plugin: first those that runtimes load, then those
// that were set aside, under whichever suffix. One that has it as an agent of the node has
// published it is that agent's.
func (r recorded) findEntries(ctx context.Context, object string) (all []entry, err error) {
	plugin, dir := cutEntry(object)
	f := cniconf.Directory{Dir: dir}
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
		if now.Type != "file" || r.isPublished(path, now) {
			continue
		}
		raw, err := contentOf(ctx, path, now)
		if err != nil {
			continue
		}
		if text := listText(raw).find(plugin); text != nil {
			all = append(all, entry{name, text, now.Changed})
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
	for _, e := range p.edits(object, now, to) {
		if err := editList(ctx, e.path, e.edit); err != nil {
			return err
		}
	}
	return nil
}

// listEdit is what a write does with one file.
type listEdit struct {
	path string
	edit func(listText) listText
}

func (p *inPlace) edits(object string, now, to ledger.State) (all []listEdit) {
	plugin, dir := cutEntry(object)
	takeOut := holders(now)
	var putInto []string
	switch {
	case to.IsZero():
	case p.config != nil:
		putInto, takeOut = []string{p.target}, p.others(now)
	default:
		putInto, takeOut = takeOut, nil
	}
	for _, name := range putInto {
		all = append(all, listEdit{filepath.Join(dir, name), func(l listText) listText { return l.put(plugin, []byte(to.Value)) }})
	}
	for _, name := range takeOut {
		all = append(all, listEdit{filepath.Join(dir, name), func(l listText) listText { return l.replace(plugin, nil) }})
	}
	return all
}

// contents returns the lists that are edited, as they are and as they would be.
func (p *inPlace) contents(ctx context.Context, object string, from, to ledger.State) (before, after map[string]ledger.State, err error) {
	before, after = map[string]ledger.State{}, map[string]ledger.State{}
	for _, e := range p.edits(object, from, to) {
		now, err := ledger.File().Read(ctx, e.path)
		if err != nil {
			return nil, nil, err
		}
		raw, err := contentOf(ctx, e.path, now)
		if err != nil {
			return nil, nil, err
		}
		before[e.path], after[e.path] = now, now.WithContent(e.edit(raw))
	}
	return before, after, nil
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
	where := func(names ...string) string { return printable.Line(filepath.Join(dir, strings.Join(names, ", "))) }
	others := p.others(from)
	switch {
	case to.IsZero():
		return fmt.Sprintf("take plugin %s out of %s", plugin, where(holders(from)...))
	case p.config == nil:
		return fmt.Sprintf("put plugin %s into %s", plugin, where(holders(from)...))
	case len(others) == 0:
		return fmt.Sprintf("put plugin %s into %s", plugin, where(p.target))
	case canonical(from.Value) == canonical(to.Value) && slices.Contains(holders(from), p.target):
		return fmt.Sprintf("take plugin %s out of %s", plugin, where(others...))
	}
	return fmt.Sprintf("put plugin %s into %s, and take it out of %s", plugin, where(p.target), where(others...))
}
