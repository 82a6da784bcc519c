// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"github.com/slipway-dev/slipway/internal/cniresult"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// ErrPluginMissing says that a plugin which a configuration names is not where the
// runtime looks, cannot be executed yet, or is just being written. It may still
// appear, since another project's installer may be at work.
var ErrPluginMissing = code.New(code.CNIPluginMissing, "plugin missing")

// ErrNoLoopback says that no runtime would find the plugin loopback, which no
// configuration names: see [Install.Names]. It comes with ErrPluginMissing.
var ErrNoLoopback = code.New(code.CNINoLoopback, "container runtimes run loopback for every pod")

// ErrTargetMissing says that the network which a [Chained] is to join is not in the
// folder, or not valid. It may still appear, since the other CNI may be starting.
var ErrTargetMissing = code.New(code.CNITargetMissing, "network to chain onto is missing")

// missing is an error about what is at none of these paths, and could still be brought to
// one of them.
type missing struct {
	error
	at []string
}

func (m missing) Unwrap() error { return m.error }

// MissingAt makes the error a bootstrap.MissingError.
func (m missing) MissingAt() []string { return m.at }

// ErrInUse is matched by the error of an undo that leaves what sandboxes need to be
// deleted: without the plugins that gave a pod its network the runtime cannot take it
// back, and containerd not without a configuration either, so pods would be stuck.
var ErrInUse = cniresult.ErrInUse

// hint adds to a permission error what is missing. It returns nil for nil.
func hint(err error) error { return remedy.File(err) }
