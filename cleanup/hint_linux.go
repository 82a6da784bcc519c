// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// hint adds the missing capability to an error, unless the error already names it.
func hint(kind string, err error) error {
	if needs := kinds[kind]; len(needs) > 0 {
		return remedy.Capabilities(err, "", needs...)
	}
	return remedy.File(err)
}

func notThere(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}
