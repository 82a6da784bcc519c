// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// The types of paths.
const (
	typeDir          = "Directory"
	typeDirOrCreate  = "DirectoryOrCreate"
	typeFile         = "File"
	typeFileOrCreate = "FileOrCreate"
	typeSocket       = "Socket"
	typeCharDevice   = "CharDevice"
	typeBlockDevice  = "BlockDevice"
)

// The modes of new files and directories are those that the kubelet uses. If every user could
// open a lock file, every user could hold the lock.
const (
	dirMode  fs.FileMode = 0o755
	fileMode fs.FileMode = 0o644
	lockMode fs.FileMode = 0o600
)

// isLock reports whether the file at path is the lock of all iptables processes of a node.
func isLock(path string) bool {
	return strings.HasSuffix(filepath.ToSlash(path), "/run/xtables.lock")
}

// Path is a path on the node, and the type that it must have.
type Path struct {
	Path string // absolute, without ".." elements

	// Type is that of a hostPath volume: "DirectoryOrCreate", which is made, with its
	// parents, with mode 0755; "FileOrCreate", which is made empty with mode 0644, and whose
	// parent must exist; or "Directory", "File" (a regular one), "Socket", "CharDevice" or
	// "BlockDevice", which must exist. If it is empty, nothing is checked. A symbolic link at
	// the path's end is followed.
	Type string
}

// clean returns p's path as made and recorded.
func (p Path) clean() string { return filepath.Clean(p.Path) }

// validate checks what can be checked without looking at the node.
func (p Path) validate() error {
	types := []string{typeDir, typeDirOrCreate, typeFile, typeFileOrCreate, typeSocket, typeCharDevice, typeBlockDevice}
	switch {
	case p.Type != "" && !slices.Contains(types, p.Type):
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

// look describes what is at p: nil if nothing is. Another type at p is an error.
func (p Path) look() (fs.FileInfo, error) {
	info, err := os.Stat(p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, p.dangling()
	}
	if err != nil {
		return nil, hint("look at host path "+p.Path, err)
	}
	if is := kind(info.Mode()); is != p.wanted() {
		return nil, code.Errorf(code.HostpathWrongType, "host path %s is a %s, and must be a %s", p.Path, is, p.wanted())
	}
	return info, nil
}

// dangling distinguishes a dangling symbolic link from a missing path.
func (p Path) dangling() error {
	target, err := os.Readlink(p.clean())
	if err != nil {
		return nil
	}
	return code.Errorf(code.HostpathMissing, "host path %s is a symbolic link to %s, which does not exist; it must be a %s", p.Path, target, p.wanted())
}

// target returns where p leads by symbolic links, or p if it cannot be followed.
func (p Path) target() string {
	if target, err := filepath.EvalSymlinks(p.clean()); err == nil {
		return target
	}
	return p.clean()
}

// wanted is the type that p must have when it exists.
func (p Path) wanted() string {
	switch p.Type {
	case typeDirOrCreate:
		return typeDir
	case typeFileOrCreate:
		return typeFile
	}
	return p.Type
}

// kind is the type of an existing object, or words if there is none for it.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return typeDir
	case m.IsRegular():
		return typeFile
	case m&fs.ModeSocket != 0:
		return typeSocket
	case m&fs.ModeCharDevice != 0:
		return typeCharDevice
	case m&fs.ModeDevice != 0:
		return typeBlockDevice
	}
	return filemode.Type(m)
}

// hint wraps err, and names a missing permission that the caller can grant.
func hint(op string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", op, remedy.File(err))
	if errors.Is(err, syscall.ENOTDIR) {
		return code.Wrap(code.HostpathWrongType, err)
	}
	return err
}
