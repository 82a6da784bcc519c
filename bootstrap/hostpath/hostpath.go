// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/code"
)

// Type is the type that a path must have. The names are those of a hostPath volume.
type Type string

// The types. All but Any follow a symbolic link at the path's end.
const (
	Any               Type = ""                  // nothing is checked
	Directory         Type = "Directory"         // must exist
	DirectoryOrCreate Type = "DirectoryOrCreate" // made, with its parents, with mode 0755
	File              Type = "File"              // a regular file, must exist
	FileOrCreate      Type = "FileOrCreate"      // made empty with mode 0644; its parent must exist
	Socket            Type = "Socket"            // a Unix socket, must exist
	CharDevice        Type = "CharDevice"        // must exist
	BlockDevice       Type = "BlockDevice"       // must exist
)

// Path is a path on the node, and the type that it must have.
type Path struct {
	Path string // absolute, without ".." elements
	Type Type
}

// Paths is the state of a node on which all paths of a list exist. It is a
// bootstrap.CheckReverter; the zero value does nothing.
type Paths struct {
	// List is worked through in order: a path that needs another one must come after
	// it.
	List []Path
}

// Validate returns an error for invalid paths and types, whatever is on the node.
func (p Paths) Validate() error {
	var errs []error
	for _, path := range p.List {
		errs = append(errs, path.validate())
	}
	return errors.Join(errs...)
}

// Kinds lists the kinds of entries that Apply makes in the context's journal.
func (Paths) Kinds() []string { return files.Kinds() }

// Namespaces lists the host's mount namespace.
func (Paths) Namespaces() []string { return files.Namespaces() }

// Places lists the paths.
func (p Paths) Places() map[string]string {
	places := map[string]string{}
	for _, path := range p.List {
		places[path.Path] = ""
	}
	return places
}

// Check names the directories and files that Apply would make. If a path is of the
// wrong type, or is missing and may not be made, the error names both types. The errors
// of several paths are joined.
func (p Paths) Check(ctx context.Context) (changes []string, err error) {
	var errs []error
	planned := map[string]Type{}
	for _, path := range p.List {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		more, err := path.check(planned)
		changes = append(changes, more...)
		errs = append(errs, err)
	}
	more, err := journal.From(ctx).CheckWishes(ctx, p.wishes()...)
	return append(changes, more...), errors.Join(append(errs, err)...)
}

// wishes are the directories and files that must be there, whether or not Apply makes them.
func (p Paths) wishes() (wishes []journal.Wish) {
	for _, path := range p.List {
		w := journal.Wish{Entry: journal.Entry{Object: path.object(), Loose: true}}
		switch {
		case path.wanted() == Directory:
			w.Kind, w.After.Type = files.Kind+"/dir", "dir"
		case path.wanted() == File && !kept(w.Object):
			w.Kind, w.After.Type = files.Kind+"/file", "file"
		default:
			continue
		}
		if files.Owns(w.Entry) != nil { // it is never undone
			continue
		}
		w.Met, _ = path.look() // check has reported the error
		wishes = append(wishes, w)
	}
	return wishes
}

// object returns the target if p is a symbolic link, else p: the target must not be
// removed either.
func (p Path) object() string {
	info, err := os.Lstat(p.clean())
	if err != nil || info.Mode().Type() != fs.ModeSymlink {
		return p.clean()
	}
	if target, err := filepath.EvalSymlinks(p.clean()); err == nil {
		return target
	}
	return p.clean()
}

// check names the objects to make for p, and notes them in planned.
func (p Path) check(planned map[string]Type) (changes []string, err error) {
	there, err := p.look()
	if err != nil || there || planned[p.clean()] == p.wanted() {
		return nil, err
	}
	switch p.Type {
	case DirectoryOrCreate:
		return p.planDirectories(planned)
	case FileOrCreate:
		return p.planFile(planned)
	}
	return nil, code.Errorf(code.HostpathMissing, "host path %s does not exist, and must be a %s", p.Path, p.wanted())
}

// planDirectories plans p and its missing parents, outermost first.
func (p Path) planDirectories(planned map[string]Type) (changes []string, err error) {
	var missing []string
	for dir := p.clean(); planned[dir] != Directory; dir = filepath.Dir(dir) {
		if planned[dir] == File {
			return nil, code.Errorf(code.HostpathWrongType, "host path %s: %s is listed as a %s, but must be a %s", p.Path, dir, File, Directory)
		}
		there, err := Path{dir, Directory}.look()
		if err != nil {
			return nil, err
		}
		if there {
			break
		}
		missing = append([]string{dir}, missing...)
	}
	for _, dir := range missing {
		planned[dir] = Directory
		changes = append(changes, "make directory "+dir)
	}
	return changes, nil
}

func (p Path) planFile(planned map[string]Type) (changes []string, err error) {
	parent := Path{filepath.Dir(p.clean()), Directory}
	there, err := parent.look()
	if err != nil {
		return nil, err
	}
	if !there && planned[parent.Path] != Directory {
		return nil, p.orphan()
	}
	planned[p.clean()] = File
	return []string{"make file " + p.clean()}, nil
}

func (p Path) orphan() error {
	dir := filepath.Dir(p.clean())
	return code.Errorf(code.HostpathMissing, "host path %s: directory %s does not exist; list it before as %s", p.Path, dir, DirectoryOrCreate)
}

// look reports whether p exists. Another type at p is an error.
func (p Path) look() (there bool, err error) {
	if err := p.validate(); err != nil || p.Type == Any {
		return true, err
	}
	info, err := os.Stat(p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, p.dangling()
	}
	if err != nil {
		return false, hint("look at host path "+p.Path, err)
	}
	if is := kind(info.Mode()); is != p.wanted() {
		return false, code.Errorf(code.HostpathWrongType, "host path %s is a %s, and must be a %s", p.Path, is, p.wanted())
	}
	return true, nil
}

// dangling distinguishes a dangling symbolic link from a missing path.
func (p Path) dangling() error {
	target, err := os.Readlink(p.clean())
	if err != nil {
		return nil
	}
	return code.Errorf(code.HostpathMissing, "host path %s is a symbolic link to %s, which does not exist; it must be a %s", p.Path, target, p.wanted())
}

// wanted is the type that p must have when it exists.
func (p Path) wanted() Type {
	switch p.Type {
	case DirectoryOrCreate:
		return Directory
	case FileOrCreate:
		return File
	}
	return p.Type
}

// kind is the Type of an existing object, or words if there is no Type for it.
func kind(m fs.FileMode) Type {
	switch {
	case m.IsDir():
		return Directory
	case m.IsRegular():
		return File
	case m&fs.ModeSocket != 0:
		return Socket
	case m&fs.ModeCharDevice != 0:
		return CharDevice
	case m&fs.ModeDevice != 0:
		return BlockDevice
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	}
	return "special file"
}
