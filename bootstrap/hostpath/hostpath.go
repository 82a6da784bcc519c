// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// Paths is the state of a node on which all these paths exist. It is a ledger.Wanter; nil
// wants nothing. A path that needs another one must come after it. An error about a path of the
// wrong type, or that is missing and may not be made, names both types. If a path cannot be
// made, the others still are.
type Paths []Path

// Wants lists what has to be made. An existing path is only looked at, unless an agent has made
// it: then it stays until no agent wants it any more.
func (p Paths) Wants(context.Context) (ledger.Wants, error) {
	l := list{planned: map[string]string{}}
	var errs []error
	for _, path := range p {
		err := path.validate()
		if err == nil {
			err = l.add(path)
		}
		errs = append(errs, err)
	}
	return ledger.Wants{List: l.wants}, errors.Join(errs...)
}

// list collects wants, each object once.
type list struct {
	wants   []ledger.Want
	planned map[string]string // what is to be made, by ID
}

// add adds what path wants. An error is about the list, whatever is on the node.
func (l *list) add(path Path) error {
	if path.Type == "" {
		return nil
	}
	info, err := path.look()
	switch {
	case err != nil:
		l.wants = append(l.wants, path.seen(err))
	case info != nil:
		l.wants = append(l.wants, path.seen(nil))
		l.wants = append(l.wants, path.accepted(info)...)
	case l.planned[idOf(path.clean())] == path.wanted():
	case path.Type == typeDirOrCreate:
		return l.addDirectories(path)
	case path.Type == typeFileOrCreate && (l.planned[idOf(filepath.Dir(path.clean()))] == typeDir || path.orphan("") == nil):
		l.planned[idOf(path.clean())] = typeFile
		l.wants = append(l.wants, newFile(path.clean()))
	default:
		l.wants = append(l.wants, path.seen(nil))
	}
	return nil
}

// idOf is the same for all spellings of a path.
func idOf(path string) string { return ledger.Want{Kind: ledger.Dir(), Object: path}.ID() }

// addDirectories adds the missing directories, the outermost first.
func (l *list) addDirectories(path Path) error {
	wants, err := ledger.DirWants(path.clean(), dirMode)
	err = hint("make host path "+path.Path, err)
	if err == nil && len(wants) > 0 {
		_, err = Path{wants[0].Object, typeDir}.look() // it may be a link that leads nowhere
	}
	if err != nil {
		l.wants = append(l.wants, path.seen(err))
		return nil
	}
	for _, w := range wants {
		switch l.planned[w.ID()] {
		case typeFile:
			return code.Errorf(code.HostpathWrongType, "host path %s: %s is listed as a %s, but must be a %s", path.Path, w.Object, typeFile, typeDir)
		case "":
			l.planned[w.ID()] = typeDir
			l.wants = append(l.wants, w)
		}
	}
	return nil
}

// kindSeen is of paths that are only looked at: the wants' Ready does that.
var kindSeen = &ledger.Kind{
	Name:  "hostpath",
	Read:  func(context.Context, string) (ledger.State, error) { return present, nil },
	Write: func(context.Context, string, ledger.State) error { return nil },
	Place: func(path string) (string, string) { return path, "" },
}

var present = ledger.State{Type: "path"}

// seen wants that p exists, and has its type. An error that was met before counts, even if it has
// gone since: nothing else of p is wanted then.
func (p Path) seen(before error) ledger.Want {
	return ledger.Want{Kind: kindSeen, Object: p.clean(), To: present, Unnamed: true, Ready: func(context.Context) error {
		info, err := p.look()
		switch {
		case before != nil:
			return before
		case err != nil || info != nil:
			return err
		case p.Type == typeFileOrCreate:
			return p.orphan("list it before as " + typeDirOrCreate)
		}
		return code.Errorf(code.HostpathMissing, "host path %s does not exist, and must be a %s", p.Path, p.wanted())
	}}
}

// orphan returns an error if p's directory is missing, with the remedy for that.
func (p Path) orphan(remedy string) error {
	dir := Path{filepath.Dir(p.clean()), typeDir}
	info, err := dir.look()
	switch {
	case err != nil:
		return fmt.Errorf("directory of host path %s: %w", p.Path, err)
	case info == nil:
		return code.Errorf(code.HostpathMissing, "host path %s: directory %s does not exist; %s", p.Path, dir.Path, remedy)
	}
	return nil
}

// maxAccepted bounds the files that are read to compare them with records. No agent has made
// larger ones.
const maxAccepted = 64 << 20

// accepted wants an existing directory or file to stay if an agent has made it. The target of
// a symbolic link must not be removed either. That it cannot be read is no error: others may
// be writing it.
func (p Path) accepted(info fs.FileInfo) []ledger.Want {
	w := ledger.Want{Object: p.target(), Loose: true, Unnamed: true, MayFail: true}
	switch {
	case info.IsDir():
		w.Kind, w.To.Type = ledger.Dir(), "dir"
	case info.Mode().IsRegular() && info.Size() <= maxAccepted:
		w.Kind, w.To.Type = ledger.File(), "file"
	default:
		return nil
	}
	if w.Kind.Owns(w.Object) != nil { // it is never undone
		return nil
	}
	return []ledger.Want{w}
}

// newFile wants an empty file. It never replaces one that was made meanwhile, since a process
// may hold a lock on it.
func newFile(path string) ledger.Want {
	mode := fileMode
	if isLock(path) {
		mode = lockMode
	}
	w := ledger.FileWant(path, mode, nil)
	w.Loose = true
	w.Kind.Stage, w.Kind.Write = nil, func(_ context.Context, path string, _ ledger.State) error {
		return remedy.File(durable.In(path, func(d *durable.Dir, name string) error { return d.CreateNew(name, mode) }))
	}
	w.Kind.Describe = func(path string, _, _ ledger.State) string { return "make file " + path }
	return w
}
