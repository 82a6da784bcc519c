// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// fail returns the error of an operation on t. If permission was denied, it names
// the missing capabilities.
func (t target) fail(op string, err error) error {
	lacks := ""
	if errors.Is(err, fs.ErrPermission) {
		switch {
		case op == "open":
			lacks = missing(remedy.SysPtrace)
		case op == "setns" && t.ns == "mnt":
			lacks = missing(remedy.SysAdmin, remedy.SysChroot)
		case op == "setns" || op == "unshare": // the latter by the profiles of container runtimes
			lacks = missing(remedy.SysAdmin)
		}
		if lacks == "" {
			err = remedy.Add(err, "with the capabilities: "+remedy.Refused)
		}
	}
	return notEntered(t.ns+" namespace "+t.path, op, err, lacks)
}

// notEntered is the error of a namespace, or a process's directory, that could not be entered:
// by which operation, why, and the capabilities that this thread lacks. The function was not
// called, so nothing was done in any namespace.
func notEntered(object, op string, err error, lacks string) error {
	if lacks != "" {
		lacks = ": missing " + lacks
	}
	err = fmt.Errorf("enter %s: %s: %w%s", object, op, err, lacks)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return code.Wrap(code.HostEntryDenied, err)
	case errors.Is(err, fs.ErrNotExist):
		return code.Wrap(code.HostNoProcess, err)
	}
	return err
}

func missing(caps ...remedy.Capability) string { return remedy.Names(remedy.Missing(caps...)...) }
