// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// fail makes the error of an operation on t, with the capabilities that it
// lacks if it was refused.
func (t target) fail(op string, err error) error {
	e := &Error{Op: op, Namespace: t.ns, Path: t.path, Err: err}
	if !errors.Is(err, fs.ErrPermission) {
		return e
	}
	switch {
	case op == "open":
		e.Missing = missing(unix.CAP_SYS_PTRACE)
	case op == "setns" && t.ns == Mount:
		e.Missing = missing(unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT)
	case op == "setns":
		e.Missing = missing(unix.CAP_SYS_ADMIN)
	}
	if e.Missing == "" {
		e.Err = fmt.Errorf("%w (with the capabilities: refused by a seccomp or security module's profile, or owned by another user namespace)", err)
	}
	return e
}

var capNames = map[int]string{
	unix.CAP_SYS_ADMIN:  "CAP_SYS_ADMIN",
	unix.CAP_SYS_CHROOT: "CAP_SYS_CHROOT",
	unix.CAP_SYS_PTRACE: "CAP_SYS_PTRACE",
}

// missing names those of caps that are not effective in the calling thread.
func missing(caps ...int) string {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // capabilities 0 to 31, 32 to 63
	err := unix.Capget(&header, &data[0])
	var names []string
	for _, c := range caps {
		if err != nil || data[c/32].Effective&(1<<(c%32)) == 0 {
			names = append(names, capNames[c])
		}
	}
	return strings.Join(names, " and ")
}
