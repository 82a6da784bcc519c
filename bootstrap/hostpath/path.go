// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// clean returns p's path as made and recorded.
func (p Path) clean() string { return filepath.Clean(p.Path) }

// validate checks what can be checked without looking at the node.
func (p Path) validate() error {
	types := []Type{Directory, DirectoryOrCreate, File, FileOrCreate, Socket, CharDevice, BlockDevice}
	switch {
	case p.Type != Any && !slices.Contains(types, p.Type):
		return fmt.Errorf("host path %q has the unknown type %q; known are %q", p.Path, p.Type, types)
	case !filepath.IsAbs(p.Path):
		return fmt.Errorf("host path %q is not absolute", p.Path)
	case strings.ContainsRune(p.Path, 0):
		return fmt.Errorf("host path %q holds a zero byte", p.Path)
	case slices.Contains(strings.Split(filepath.ToSlash(p.Path), "/"), ".."):
		return fmt.Errorf("host path %q has a %q in it", p.Path, "..")
	}
	return nil
}

// hint wraps err, and names a missing permission that the caller can grant.
func hint(op string, err error) error {
	err = fmt.Errorf("%s: %w", op, remedy.File(err))
	if errors.Is(err, syscall.ENOTDIR) {
		return code.Wrap(code.HostpathWrongType, err)
	}
	return err
}
