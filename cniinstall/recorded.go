// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/input"
)

// recorded is what the ledger has of CNI files, of all agents. It is empty without a ledger.
type recorded struct {
	agent string            // the context's
	files []ledger.Record   // and plugins in others' configurations
	dirs  map[string]string // the names without links of directories, as they are recorded
}

func readRecorded(ctx context.Context) (r recorded, err error) {
	book := ledger.From(ctx)
	r.dirs = map[string]string{}
	r.agent, _ = book.Mark()
	status, err := book.Status(ctx)
	for _, o := range status.Records {
		if slices.Contains([]string{pluginKind, confKind, inPlaceKind}, o.Kind) {
			r.files = append(r.files, o)
		}
	}
	return r, err
}

// wants returns what the context's agent wants of an object.
func (r recorded) wants(o ledger.Record) (c ledger.Claim, ok bool) {
	for _, c = range slices.Backward(o.Claims) {
		if c.Agent == r.agent {
			return c, true
		}
	}
	return c, false
}

// rival says what tells the agent that has made the records from the one that is installed: they
// have no name of a configuration, a network or a plugin in common. What belongs to no agent, such as
// the plugin loopback, does not count.
func (j *job) rival(ctx context.Context, records []ledger.Record) (why string) {
	var ours, theirs []string
	for _, p := range j.plugins {
		ours = append(ours, filepath.Base(p.Object))
	}
	ours = append(ours, j.net.names()...)
	for _, o := range records {
		plugin, _ := cutEntry(o.Object)
		switch {
		case o.Kind == inPlaceKind:
			theirs = append(theirs, plugin)
		case o.Kind == pluginKind:
			theirs = append(theirs, filepath.Base(o.Object))
		case o.Kind == confKind && isConfName(o.Object) && !o.Left.IsZero():
			n, err := parseFile(ctx, o.Object)
			if err != nil { // its name alone is known
				n = &network{file: filepath.Base(o.Object)}
			}
			theirs = append(theirs, n.names()...)
		}
	}
	ours, theirs = agents(ours), agents(theirs)
	isShared := slices.ContainsFunc(ours, func(name string) bool { return slices.Contains(theirs, name) })
	if isShared || len(ours)*len(theirs) == 0 {
		return ""
	}
	return fmt.Sprintf("it has %s, and this one installs %s", strings.Join(theirs, ", "), strings.Join(ours, ", "))
}

// names are those of the configuration, its network and its plugins.
func (n *network) names() []string {
	if n == nil {
		return nil
	}
	return append([]string{strings.TrimSuffix(n.file, filepath.Ext(n.file)), n.name}, n.types...)
}

// agents returns the names that tell an agent, once each.
func agents(names []string) []string {
	return slices.DeleteFunc(unique(names), func(name string) bool { return name == "" || slices.Contains(referencePlugins, name) })
}

// inDir returns the path of a file as it is recorded.
func (r recorded) inDir(dir, name string) string {
	if len(r.files) == 0 {
		return filepath.Join(dir, name)
	}
	known, ok := r.dirs[dir]
	if !ok {
		path, err := ledger.File().Canonical(filepath.Join(dir, "x"))
		if known = filepath.Dir(path); err != nil {
			known = dir
		}
		r.dirs[dir] = known
	}
	return filepath.Join(known, name)
}

// at returns the record of a file, if the agent wants something of it.
func (r recorded) at(path string) (o ledger.Record, c ledger.Claim, ok bool) {
	o = r.record(path)
	c, ok = r.wants(o)
	return o, c, ok
}

// isOwnConf reports whether the agent has published a configuration at path.
func (r recorded) isOwnConf(path string) bool {
	o, c, ok := r.at(path)
	return ok && o.Kind == confKind && isConfName(path) && !c.To.IsZero()
}

// original returns what was at path before the agent.
func (r recorded) original(path string) (s ledger.State, ok bool) {
	o, _, ok := r.at(path)
	return o.Original, ok && !o.Original.IsZero()
}

// asides lists the configurations of others in a directory that the agent has set aside.
func (r recorded) asides(dir string) []ledger.Record {
	return slices.DeleteFunc(r.replaced(dir), func(o ledger.Record) bool {
		c, mine := r.wants(o)
		return !mine || !c.To.IsZero()
	})
}

// replaced lists the configurations of others in a directory that agents have set aside, or whose
// place they have taken.
func (r recorded) replaced(dir string) (all []ledger.Record) {
	for _, o := range r.files {
		if o.Kind == confKind && isConfName(o.Object) && !o.Original.IsZero() && o.Object == r.inDir(dir, filepath.Base(o.Object)) {
			all = append(all, o)
		}
	}
	return all
}

// isRendered reports whether an agent of the node has made the file from another configuration.
func (r recorded) isRendered(path string) bool {
	o := r.record(path)
	return slices.ContainsFunc(o.Claims, func(c ledger.Claim) bool { return c.To.Identity == renderedMark })
}

// isPublished reports whether a file is, letter by letter, as agents of the node want it.
func (r recorded) isPublished(path string, now ledger.State) bool {
	o := r.record(path)
	return o.Left.SHA256 == now.SHA256 && o.Original.SHA256 != now.SHA256 ||
		slices.ContainsFunc(o.Claims, func(c ledger.Claim) bool { return c.To.SHA256 == now.SHA256 })
}

// record returns the record of a file, whichever agent has it.
func (r recorded) record(path string) ledger.Record {
	return r.named(r.inDir(filepath.Dir(path), filepath.Base(path)))
}

// named returns the record of an object.
func (r recorded) named(object string) (o ledger.Record) {
	if i := slices.IndexFunc(r.files, func(o ledger.Record) bool { return o.Object == object }); i >= 0 {
		o = r.files[i]
	}
	return o
}

// readConf reads a configuration as its owner has written it: without the plugins that agents
// of the node have put into it in place. So it stays what it is to an agent that publishes it
// or sets it aside, whenever another one comes or goes.
func readConf(ctx context.Context, path string) (ledger.State, error) {
	now, err := ledger.File().Read(ctx, path)
	if err != nil || now.Type != "file" || now.Size > input.MaxNetwork {
		return now, err
	}
	files, err := readRecorded(ctx)
	if err != nil || files.isPublished(path, now) {
		return now, err
	}
	raw, err := contentOf(ctx, path, now)
	if edited := files.asOwned(path, raw, original); err == nil && !bytes.Equal(edited, raw) {
		now = now.WithContent(edited)
	}
	return now, err
}

// holds reports whether a file has the content, with or without plugins that agents have put
// into it in place.
func holds(ctx context.Context, path string, content []byte) bool {
	raw, err := input.ReadFile(ctx, path, input.MaxNetwork)
	if err == nil && bytes.Equal(raw, content) {
		return true
	}
	now, err := readConf(ctx, path)
	return err == nil && now.SHA256 == now.WithContent(content).SHA256
}

func original(o ledger.Record) (ledger.State, bool) { return o.Original, true }

// asOwned brings the plugins that agents have put into a configuration to the states that the
// function gives for them.
func (r recorded) asOwned(path string, raw []byte, become func(ledger.Record) (to ledger.State, changes bool)) []byte {
	for _, o := range r.files {
		plugin, dir := cutEntry(o.Object)
		to, changes := become(o)
		if o.Kind != inPlaceKind || !changes || dir != filepath.Dir(r.inDir(filepath.Dir(path), "x")) {
			continue
		}
		var text []byte
		if !to.IsZero() {
			text = []byte(to.Value)
		}
		raw = listText(raw).replace(plugin, text)
	}
	return raw
}

// isAsLeft reports whether a recorded file has the content with which agents have left it.
func isAsLeft(ctx context.Context, o ledger.Record) (bool, error) {
	now, err := readConf(ctx, o.Object)
	return err == nil && !now.IsZero() && now.SHA256 == o.Left.SHA256 && now.Type == o.Left.Type, err
}
