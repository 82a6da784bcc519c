// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/remedy"
	"github.com/slipway-dev/slipway/internal/unsupported"
)

// ErrNoSystemd says that there is nobody who could reload sysctl.d files. It
// matches [errors.ErrUnsupported], as errors of a system that has no such call
// do too; of the two only this one makes [DropIn] set values directly.
var ErrNoSystemd error = unsupported.Error("no systemd")

var errNotDir = syscall.ENOTDIR

// pathless is err without the path of a file, which says no more than the key.
func pathless(err error) error {
	if at, ok := err.(*fs.PathError); ok {
		return at.Err
	}
	return err
}

// hint adds to err what is missing on the node or in the pod.
func hint(key Key, err error) error {
	var missing string
	switch {
	case errors.Is(err, fs.ErrNotExist):
		missing = "this kernel does not have the key, or the module that brings it is not loaded"
	case errors.Is(err, syscall.EROFS):
		missing = "/proc/sys is read-only here: run the container privileged or with procMount: Unmasked, or act in the host's mount namespace"
	case errors.Is(err, fs.ErrPermission):
		missing = "needs " + capability(key)
	case errors.Is(err, syscall.EINVAL):
		missing = "the kernel does not take this value"
	default:
		return err
	}
	return remedy.Add(err, missing)
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
