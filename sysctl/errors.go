// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/remedy"
	"github.com/slipway-dev/slipway/internal/unsupported"
)

// ErrNoSystemd says that no systemd is there to reload the sysctl.d files. It
// matches [errors.ErrUnsupported]; but unlike other errors that do, it makes
// [DropIn] set values directly.
var ErrNoSystemd error = unsupported.Error("no systemd")

// ErrSwallowed says that a write succeeded but the value is still a different one:
// another key, a security module or a limit of the kernel determines it. It is
// wrapped in an [Error], whose text names the value that was found.
var ErrSwallowed = code.New(code.SysctlOverridden, "written, and it is another all the same")

// ErrReadOnlyDir says that no file can be made in a [DropIn]'s directory: its file
// system is read-only, or the directory is immutable. Another directory that is read
// at boot would do, or [Settings], which write no file.
var ErrReadOnlyDir = code.New(code.SysctlDirectoryReadOnly, "its directory is read-only")

// Error says which value could not be read, set or put back. Independent failures
// are joined, and [errors.As] finds the first.
type Error struct {
	Op    string // "read", "set" or "put back"
	Key   Key    // in its dotted spelling
	Value string // that it was to have; empty for a read
	Err   error
}

// Error returns one line that says what was tried, and why it failed.
func (e *Error) Error() string {
	if e.Op == opRead {
		return fmt.Sprintf("%s %s: %v", e.Op, e.Key, e.Err)
	}
	return fmt.Sprintf("%s %s = %s: %v", e.Op, e.Key, oneLine(e.Value), e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

const (
	opRead    = "read"
	opSet     = "set"
	opPutBack = "put back"
)

// swallowed is ErrSwallowed with the value that was found.
type swallowed struct{ now, why string }

func (s swallowed) Error() string {
	return fmt.Sprintf("written, and it is %s all the same%s", oneLine(s.now), s.why)
}

func (swallowed) Is(target error) bool { return target == ErrSwallowed }
func (swallowed) Code() string         { return code.SysctlOverridden }

var errNotDir = syscall.ENOTDIR

// pathless returns err without the path of the file, which tells no more than the
// key.
func pathless(err error) error {
	if at, ok := err.(*fs.PathError); ok {
		return at.Err
	}
	return err
}

// hint adds to err what the node or the pod lacks.
func hint(key Key, err error) error {
	var missing, cause string
	switch {
	case errors.Is(err, fs.ErrNotExist):
		cause, missing = code.SysctlKeyMissing, "this kernel does not have the key, or the module that brings it is not loaded"
	case errors.Is(err, syscall.EROFS):
		cause, missing = code.SysctlReadOnly, "/proc/sys is read-only here: run the container privileged or with procMount: Unmasked, or act in the host's mount namespace"
	case errors.Is(err, fs.ErrPermission):
		return remedy.Add(err, "needs "+capability(key))
	case errors.Is(err, syscall.EINVAL):
		cause, missing = code.SysctlValueRefused, "the kernel does not take this value"
	default:
		return err
	}
	return code.Wrap(cause, remedy.Add(err, missing))
}

// capability is what a write to key takes: below net, CAP_NET_ADMIN in the
// user namespace that owns the network namespace (net_ctl_permissions in
// net/sysctl_net.c); the JIT's values CAP_SYS_ADMIN too; elsewhere the file's
// mode, which is root's, and for some keys CAP_SYS_ADMIN.
func capability(key Key) string {
	path, _ := key.path()
	if strings.HasPrefix(path, "net/") && !strings.HasPrefix(path, "net/core/bpf_jit") {
		return remedy.NetAdmin.String() + " over the network namespace"
	}
	return "root and " + remedy.SysAdmin.String() + " on the host, and a /proc/sys that no LSM profile denies"
}
