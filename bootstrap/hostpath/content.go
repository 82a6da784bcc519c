// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/once"
)

// Content is the state of a node on which the file at Path has this content, mode and owner:
// a kubeconfig, a certificate. It is a bootstrap.CheckReverter in a plan with a journal.
// An earlier file is replaced atomically and durably, also if it is a symbolic link,
// which is not followed; it comes back when the step is undone. Anything else at the
// path, such as a directory, a device or a mount, is an error.
type Content struct {
	// Path is absolute, without ".." elements, and not below /proc, /sys or /dev.
	Path string

	// Bytes is the content. For an empty file it is empty but not nil.
	Bytes []byte

	// Render, if set, returns the content in place of Bytes, for content that is not
	// known before the plan runs. A plan calls it on the host, once per run if it
	// succeeds; read files of the container in Plan.Prepare instead. Without a plan,
	// Check and Apply call it each time, so it must return the same content.
	Render func(ctx context.Context) ([]byte, error)

	// Mode holds the permission bits, whatever the umask. Zero means 0600, since agents
	// mostly write credentials; set it for a file that others read.
	Mode fs.FileMode

	// UID and GID own the file. Zero means those of the process, which for root are 0
	// too. Others need CAP_CHOWN.
	UID, GID int

	// Parents makes missing parent directories, with mode 0755; they are undone too.
	Parents bool

	// Secret marks the content, and any content it replaces, as a credential: the journal
	// keeps neither. The replaced content cannot come back: the change that Check reports
	// says so, and undoing removes the file.
	Secret bool

	// Rewritten allows other programs, such as a token refresher, to rewrite the file.
	// Once this step has written it, other content is not a difference until the step
	// wants another content, mode or owner. Undoing removes the file, or brings back the
	// earlier one, whatever the content by then. Without a journal the writer is unknown,
	// and each difference counts.
	Rewritten bool
}

// Validate returns an error if the fields are invalid, whatever is on the node.
func (c Content) Validate() error {
	if err := c.path().validate(); err != nil {
		return err
	}
	err := files.Owns(journal.Entry{Kind: kindFile, Object: c.clean()})
	switch {
	case err != nil:
	case kept(c.clean()):
		err = errors.New("it is a lock that others hold, and is never replaced")
	case c.Bytes == nil && c.Render == nil:
		err = errors.New("no content is given: set Bytes, to []byte{} for an empty file, or Render")
	case c.Bytes != nil && c.Render != nil:
		err = errors.New("both Bytes and Render are set")
	case c.Mode&^fs.ModePerm != 0:
		err = fmt.Errorf("its mode %v has more than permission bits", c.Mode)
	case c.UID < 0 || c.GID < 0:
		err = fmt.Errorf("its owner %d:%d is not a user and group ID", c.UID, c.GID)
	}
	if err != nil {
		return fmt.Errorf("host path %q: %w", c.Path, err)
	}
	return nil
}

func (c Content) path() Path    { return Path{c.Path, FileOrCreate} }
func (c Content) clean() string { return c.path().clean() }

// kindFile is the kind of the entries of files.
var kindFile = files.Kinds()[0]

// Kinds lists the kinds of entries that Apply makes in the context's journal.
func (Content) Kinds() []string { return files.Kinds() }

// Namespaces lists the host's mount namespace.
func (Content) Namespaces() []string { return files.Namespaces() }

// Places lists the path.
func (c Content) Places() map[string]string { return map[string]string{c.Path: ""} }

// Check reports whether Apply would write the file, and which directories it would make.
// It shows no content.
func (c Content) Check(ctx context.Context) (changes []string, err error) {
	file, err := c.file(ctx)
	if err != nil {
		return nil, err
	}
	changes, err = c.parents()
	if err != nil {
		return nil, err
	}
	there, err := c.look()
	if err != nil {
		return nil, err
	}
	written, err := files.Written(ctx, journal.From(ctx), c.clean(), file)
	if err != nil {
		return nil, hint("host path", err)
	}
	if !written {
		change, err := c.change(ctx, there)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	shared, err := journal.From(ctx).CheckWishes(ctx, files.Wish(c.clean(), file, written))
	return append(changes, shared...), err
}

// file returns the file wanted at the path.
func (c Content) file(ctx context.Context) (journal.File, error) {
	if err := c.Validate(); err != nil {
		return journal.File{}, err
	}
	if err := ctx.Err(); err != nil {
		return journal.File{}, err
	}
	file := journal.File{Content: c.Bytes, Mode: c.Mode, UID: c.UID, GID: c.GID, Secret: c.Secret, Any: c.Rewritten}
	if c.Render == nil {
		return file, nil
	}
	content, err := once.Do(ctx, rendered{c.clean(), reflect.ValueOf(c.Render).Pointer()}, c.Render)
	if err != nil {
		return journal.File{}, fmt.Errorf("render host path %s: %w", c.Path, err)
	}
	file.Content = slices.Clone(content)
	return file, nil
}

// rendered is the context key of a run's rendered content.
type rendered struct {
	path string
	by   uintptr
}

// parents plans the missing parent directories.
func (c Content) parents() (changes []string, err error) {
	dir := Path{filepath.Dir(c.clean()), DirectoryOrCreate}
	there, err := dir.look()
	switch {
	case err != nil:
		return nil, fmt.Errorf("directory of host path %s: %w", c.Path, err)
	case there:
		return nil, nil
	case !c.Parents:
		return nil, code.Errorf(code.HostpathMissing, "host path %s: directory %s does not exist; make it in an earlier step, or set Parents", c.Path, dir.Path)
	}
	return dir.check(map[string]Type{})
}

// look describes the object at the path; nil if there is none. One that cannot be
// replaced is an error.
func (c Content) look() (fs.FileInfo, error) {
	info, err := os.Lstat(c.clean())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, hint("look at host path "+c.Path, err)
	case !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink:
		return nil, code.Errorf(code.HostpathWrongType, "host path %s is a %s, and must be a %s: move it away", c.Path, kind(info.Mode()), File)
	}
	return info, nil
}

// change describes what Apply would do to the existing object.
func (c Content) change(ctx context.Context, there fs.FileInfo) (string, error) {
	switch {
	case there == nil:
		return "make file " + c.clean(), nil
	case !there.Mode().IsRegular():
		return "replace symbolic link " + c.clean() + " with a file", nil
	}
	change := "write file " + c.clean()
	if want := c.mode(); there.Mode().Perm() != want {
		change += fmt.Sprintf(", mode %04o (is %04o)", want, filemode.Unix(there.Mode()))
	}
	j := journal.From(ctx)
	_, ours, err := j.Lookup(ctx, kindFile, c.clean())
	if c.Secret && j != nil && !ours && there.Size() > 0 {
		change += "; its present content is not kept, and does not come back"
	}
	return change, err
}

func (c Content) mode() fs.FileMode {
	if c.Mode == 0 {
		return 0o600
	}
	return c.Mode
}

// CheckPermission returns an error if this process could not write the file.
func (c Content) CheckPermission(context.Context) error {
	if _, err := durable.Writable(filepath.Dir(c.clean())); err != nil {
		return hint("write host path "+c.Path, err)
	}
	return nil
}

// Apply writes the file unless it is already as wanted. It records the change first.
func (c Content) Apply(ctx context.Context) error {
	file, err := c.file(ctx)
	if err != nil {
		return err
	}
	missing, err := c.parents()
	if err != nil {
		return err
	}
	if _, err := c.look(); err != nil {
		return err
	}
	if len(missing) > 0 {
		if err := files.MkdirAll(ctx, journal.From(ctx), filepath.Dir(c.clean()), dirMode); err != nil {
			return hint("make the directory of host path "+c.Path, err)
		}
	}
	if err := files.Write(ctx, journal.From(ctx), c.clean(), file); err != nil {
		return hint("host path", err)
	}
	return journal.From(ctx).Wish(ctx, files.Wish(c.clean(), file, true))
}
