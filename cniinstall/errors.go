// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// ErrPluginMissing says that a plugin which a configuration names is not where
// the runtime looks, cannot be executed yet, or is just being written. It may
// come: another project's installer may be at work.
var ErrPluginMissing = errors.New("plugin missing")

// ErrTargetMissing says that the network which a [Chained] is to join is not in
// the folder, or not valid. It may come: the other CNI may be starting.
var ErrTargetMissing = errors.New("network to chain onto is missing")

// hint adds what is missing to an error that says only that something is; nil
// stays nil.
func hint(err error) error {
	switch {
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w (needs a file system mounted read-write)", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (needs root: CAP_DAC_OVERRIDE, CAP_CHOWN, CAP_FOWNER; no immutable attribute; to execute plugins, a mount without noexec)", err)
	}
	return err
}
