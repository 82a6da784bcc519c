// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package remedy adds to the kernel's answers what is missing where they say
// only that something is: a capability, or an option of a mount.
package remedy

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// remedied is an error that says what is missing.
type remedied struct {
	error
	missing string
}

func (r remedied) Error() string { return fmt.Sprintf("%v (%s)", r.error, r.missing) }

func (r remedied) Unwrap() error { return r.error }

// Add adds what is missing to err, unless that is said already. nil stays nil.
func Add(err error, missing string) error {
	var said remedied
	if err == nil || errors.As(err, &said) {
		return err
	}
	return remedied{err, missing}
}

// File adds what is missing to an error of a file or directory.
func File(err error) error {
	switch {
	case errors.Is(err, syscall.EROFS):
		return Add(err, "needs a file system mounted read-write")
	case errors.Is(err, syscall.EBUSY):
		return Add(err, "something is mounted on it: unmount that first")
	case errors.Is(err, syscall.ENOSPC):
		return Add(err, "needs free space and free inodes: see df, and df -i")
	case errors.Is(err, syscall.ENOTDIR):
		return Add(err, "what is in the place of a directory has to be moved away")
	case errors.Is(err, fs.ErrPermission):
		return Add(err, "needs root with CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_CHOWN, or the owner, and no immutable attribute or security module in the way")
	}
	return err
}

// Capability is a number of capabilities(7).
type Capability int

// The capabilities that are asked for.
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

// Refused is why a call is denied to a thread that has the capability.
const Refused = "refused by a seccomp or security module's profile, or owned by another user namespace"

// Capabilities adds to an error of a call that takes the capabilities which of
// them the calling thread does not have in effect. The kernel wants them where
// it says, such as "in the initial user namespace"; empty: anywhere.
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
