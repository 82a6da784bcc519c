// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest

import (
	"path/filepath"
	"testing"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
)

// Host returns a host for the plans of a test, which change only what it gives them, such as
// files in a directory of its own: no namespace is entered, nothing is refused in a container,
// and the lock is the test's, for which a plan does not wait.
func Host(t testing.TB) hostns.Host {
	return hostns.Host{Here: true, LockFile: filepath.Join(t.TempDir(), "lock"), LockTimeout: -1}
}
