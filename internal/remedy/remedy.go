// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package remedy adds the cause to kernel errors that only report a denial: the missing
// capability, or a mount option.
package remedy

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// remedied is an error that names the cause.
type remedied struct {
	error
	missing string
}

func (r remedied) Error() string { return fmt.Sprintf("%v (%s)", r.error, r.missing) }

func (r remedied) Unwrap() error { return r.error }

// Add adds the cause to err, unless err already contains it. nil stays nil.
func Add(err error, missing string) error {
	var said remedied
	if err == nil || errors.As(err, &said) {
		return err
	}
	return remedied{err, missing}
}

// File adds the cause to an error of a file or directory.
func File(err error) error {
	switch {
	case errors.Is(err, syscall.EROFS):
		return Add(err, "needs a file system mounted read-write")
	case errors.Is(err, syscall.EBUSY):
		return Add(err, "something is mounted on it: unmount that first")
	case errors.Is(err, syscall.ENOSPC):
		return Add(err, "needs free space and free inodes: see df, and df -i")
	case errors.Is(err, syscall.ENOTDIR):
		return Add(err, "a directory belongs there: move the other object away")
	case errors.Is(err, fs.ErrPermission):
		return Add(err, "needs root with CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_CHOWN, or the owner, and no immutable attribute or security module in the way")
	}
	return err
}

// Capability is a number of capabilities(7).
type Capability int

// The capabilities that the library needs.
const (
	NetAdmin  Capability = 12
	NetRaw    Capability = 13
	SysModule Capability = 16
	SysChroot Capability = 18
	SysPtrace Capability = 19
	SysAdmin  Capability = 21
	BPF       Capability = 39
)

func (c Capability) String() string {
	return map[Capability]string{
		NetAdmin: "CAP_NET_ADMIN", NetRaw: "CAP_NET_RAW", SysModule: "CAP_SYS_MODULE", SysChroot: "CAP_SYS_CHROOT",
		SysPtrace: "CAP_SYS_PTRACE", SysAdmin: "CAP_SYS_ADMIN", BPF: "CAP_BPF",
	}[c]
}

// Names lists capabilities in a sentence.
func Names(caps ...Capability) string {
	names := make([]string, len(caps))
	for i, c := range caps {
		names[i] = c.String()
	}
	return strings.Join(names, " and ")
}

// Refused is the cause if a call is denied to a thread that has the capability.
const Refused = "refused by a seccomp or security module's profile, or owned by another user namespace"

// Capabilities adds to an error of a call that needs the capabilities those that are not
// in effect in the calling thread. where is the namespace in which the kernel requires
// them, such as "in the initial user namespace"; empty means any.
func Capabilities(err error, where string, caps ...Capability) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if where != "" {
		where = " " + where
	}
	if missing := Missing(caps...); len(missing) > 0 {
		return Add(err, "needs "+Names(missing...)+where)
	}
	return Add(err, "needs "+Names(caps...)+where+", which is in effect here: "+Refused)
}
