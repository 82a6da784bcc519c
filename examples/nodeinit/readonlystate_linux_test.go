// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Check says beforehand that an apply could record nothing.
func TestPLAN17_AReadOnlyStateDirectory(t *testing.T) {
	t.Parallel()
	for name, mount := range map[string]string{
		"itself":              "mkdir -p /var/lib/slipway && mount -n -t tmpfs -o ro,mode=0700 tmpfs /var/lib/slipway",
		"the one that has it": "mount -n -t tmpfs -o ro tmpfs /var/lib",
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.shell(mount)
			before := n.state()
			for _, command := range []string{"check", "apply"} {
				o := n.run(n.args(command)...)
				require.Equal(t, 1, o.code, "%s: %s", command, o.stdout)
				require.Contains(t, o.stderr, "state directory /var/lib/slipway: read-only file system (needs a file system mounted read-write): --state-dir names another", command)
			}
			require.Empty(t, before.Diff(n.state()))
			o := n.run(n.args("check", "--state-dir=")...)
			require.Equal(t, 2, o.code, o.stderr)
		})
	}
}
