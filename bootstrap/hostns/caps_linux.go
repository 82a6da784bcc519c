// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"errors"
	"io/fs"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// fail returns the error of an operation on t. If permission was denied, it names
// the missing capabilities.
func (t target) fail(op string, err error) error {
	e := &entryError{Op: op, Namespace: t.ns, Path: t.path, Err: err}
	if !errors.Is(err, fs.ErrPermission) {
		return e
	}
	switch {
	case op == "open":
		e.Missing = missing(remedy.SysPtrace)
	case op == "setns" && t.ns == Mount:
		e.Missing = missing(remedy.SysAdmin, remedy.SysChroot)
	case op == "setns" || op == "unshare": // the latter by the profiles of container runtimes
		e.Missing = missing(remedy.SysAdmin)
	}
	if e.Missing == "" {
		e.Err = remedy.Add(err, "with the capabilities: "+remedy.Refused)
	}
	return e
}

func missing(caps ...remedy.Capability) string { return remedy.Names(remedy.Missing(caps...)...) }
