// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// recorded is what the ledger has of CNI files, of all agents. It is empty without a ledger.
type recorded struct {
	agent string // the context's
	files []ledger.Record
	dirs  map[string]string // the names without links of folders, as they are recorded
}

func readRecorded(ctx context.Context) (r recorded, err error) {
	book := ledger.From(ctx)
	r.dirs = map[string]string{}
	r.agent, _ = book.Mark()
	status, err := book.Status(ctx)
	for _, o := range status.Records {
		if o.Kind == pluginKind || o.Kind == confKind {
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
	path = r.inDir(filepath.Dir(path), filepath.Base(path))
	for _, o := range r.files {
		if o.Object == path {
			c, ok = r.wants(o)
			return o, c, ok
		}
	}
	return o, c, false
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

// asides lists the configurations of others in a folder that the agent has set aside.
func (r recorded) asides(dir string) []ledger.Record {
	return slices.DeleteFunc(r.replaced(dir), func(o ledger.Record) bool {
		c, _ := r.wants(o)
		return !c.To.IsZero()
	})
}

// replaced lists the configurations of others in a folder that the agent has set aside, or
// whose place it has taken.
func (r recorded) replaced(dir string) (all []ledger.Record) {
	for _, o := range r.files {
		_, mine := r.wants(o)
		if mine && o.Kind == confKind && isConfName(o.Object) && !o.Original.IsZero() && o.Object == r.inDir(dir, filepath.Base(o.Object)) {
			all = append(all, o)
		}
	}
	return all
}

// isAsLeft reports whether a recorded file has the content with which agents have left it.
func isAsLeft(ctx context.Context, o ledger.Record) (bool, error) {
	now, err := ledger.File().Read(ctx, o.Object)
	return err == nil && !now.IsZero() && now.SHA256 == o.Left.SHA256 && now.Type == o.Left.Type, err
}
