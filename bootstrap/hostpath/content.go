// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
)

// Content is the state of a node on which the file at Path has this content, mode and owner:
// a kubeconfig, a certificate. It is a ledger.Wanter.
// An earlier file is replaced atomically and durably, also if it is a symbolic link,
// which is not followed; it comes back when the step is undone. Anything else at the
// path, such as a directory, a device or a mount, is an error.
type Content struct {
	// Path is absolute, without ".." elements, and not below /proc, /sys or /dev.
	Path string

	// Bytes is the content. For an empty file it is empty but not nil. If it is not known before
	// the plan runs, a bootstrap.Step's Prepare returns the Content.
	Bytes []byte

	// Mode holds the permission bits, whatever the umask. Zero means 0600, since agents
	// mostly write credentials; set it for a file that others read.
	Mode fs.FileMode

	// UID and GID own the file. Zero means those of the process, which for root are 0
	// too. Others need CAP_CHOWN.
	UID, GID int

	// Parents makes missing parent directories, with mode 0755; they are undone too.
	Parents bool

	// Secret marks the content, and any content it replaces, as a credential: no copy of
	// either is kept. The replaced content cannot come back: a plan advises so beforehand,
	// and undoing removes the file.
	Secret bool

	// Rewritten allows other programs, such as a token refresher, to rewrite the file.
	// Once this step has written it, other content is not a difference until the step
	// wants another content, mode or owner. Undoing removes the file, or brings back the
	// earlier one, whatever the content by then. Without a ledger the writer is unknown,
	// and each difference counts.
	Rewritten bool
}

// validate returns an error if the fields are invalid, whatever is on the node.
func (c Content) validate() error {
	if err := c.path().validate(); err != nil {
		return err
	}
	err := ledger.File().Owns(c.clean())
	switch {
	case err != nil:
	case isLock(c.clean()):
		err = errors.New("it is a lock that others hold, and is never replaced")
	case c.Bytes == nil:
		err = errors.New("no content is given: set Bytes, to []byte{} for an empty file")
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

func (c Content) path() Path    { return Path{c.Path, typeFileOrCreate} }
func (c Content) clean() string { return c.path().clean() }

// Wants lists the file, after the missing directories above it if Parents is set.
func (c Content) Wants(ctx context.Context) (wants ledger.Wants, err error) {
	if err := errors.Join(c.validate(), ctx.Err()); err != nil {
		return wants, err
	}
	if c.Parents {
		wants.List, err = ledger.DirWants(filepath.Dir(c.clean()), dirMode)
	}
	parentsErr := hint("make the directory of host path "+c.Path, err)
	file := ledger.FileWant(c.clean(), cmp.Or(c.Mode, 0o600), c.Bytes)
	file.To.UID, file.To.GID = cmp.Or(c.UID, file.To.UID), cmp.Or(c.GID, file.To.GID)
	file.Secret, file.Rewritten = c.Secret, c.Rewritten
	file.Ready = func(context.Context) error {
		return cmp.Or(c.look(), parentsErr)
	}
	wants.List = append(wants.List, file)
	return wants, nil
}

// look returns an error if the file cannot be put at the path.
func (c Content) look() error {
	if !c.Parents {
		if err := c.path().orphan("make it in an earlier step, or set Parents"); err != nil {
			return err
		}
	}
	info, err := os.Lstat(c.clean())
	if err == nil && !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink {
		return code.Errorf(code.HostpathWrongType, "host path %s is a %s, and must be a %s: move it away", c.Path, kind(info.Mode()), typeFile)
	}
	return nil // that it cannot be read is said when it is
}
