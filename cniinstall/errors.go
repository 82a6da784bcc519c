// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/cniresult"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// ErrInvalid means that a runtime would reject a configuration, or would load it and fail
// for every pod. The error's text has the place in the configuration.
var ErrInvalid = code.New(code.CNIConfigInvalid, "invalid CNI configuration")

// ErrPluginMissing means that a plugin named by a configuration is not in the
// runtime's directories, cannot be executed yet, or is just being written. It may still
// appear, since another project's installer may be at work: it matches [ledger.ErrMissing].
var ErrPluginMissing = code.Wrap(code.CNIPluginMissing, missing("plugin missing"))

// errNoLoopback means that no runtime would find the plugin loopback, which no
// configuration names: see [Install.Names]. The reference plugins have it. Name it in
// [Install].Vouched if the runtime finds it where this process does not look, or in Optional
// if pods on this node need none.
var errNoLoopback = code.New(code.CNINoLoopback, "container runtimes run loopback for every pod")

// ErrTargetMissing means that the network that a [Chained] should join is not in
// the directory, or not valid. It may still appear, since the other CNI may be
// starting: it matches [ledger.ErrMissing].
var ErrTargetMissing = code.Wrap(code.CNITargetMissing, missing("network to chain onto is missing"))

// missing is the text of an error that matches [ledger.ErrMissing].
type missing string

func (m missing) Error() string      { return string(m) }
func (missing) Is(target error) bool { return target == ledger.ErrMissing }

// unusable is the error about a directory.
func unusable(dir, format string, args ...any) error {
	return code.Errorf(code.CNIDirectoryUnusable, "%s "+format, append([]any{dir}, args...)...)
}

// ErrInUse is matched by the error of an undo that leaves files needed to delete
// sandboxes: without the plugins that set up a pod's network the runtime cannot
// tear it down, nor can containerd without a configuration, so pods would be stuck.
var ErrInUse = cniresult.ErrInUse

// hint adds the remedy to a permission error. It returns nil for nil.
func hint(err error) error { return remedy.File(err) }
