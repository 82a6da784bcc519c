// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/fsmount"
)

// A mount of another source is not unmounted, whatever a journal says.
func TestSEC3_WhatNoMountCanHaveRecordedIsNotObeyed(t *testing.T) {
	h := fsmount.Handler{Kind: "acme", FSType: "bpf"}
	for name, c := range map[string]struct{ kind, path, source, want string }{
		"ours":              {"acme/mount", "/run/acme/bpf", "slipway-abc", ""},
		"the root":          {"acme/mount", "/", "slipway-abc", "not an absolute path below /"},
		"relative":          {"acme/mount", "run/acme/bpf", "slipway-abc", "not an absolute path below /"},
		"another's":         {"acme/mount", "/sys/fs/bpf", "bpf", "does not start with slipway-"},
		"of no source":      {"acme/mount", "/sys/fs/bpf", "", "does not start with slipway-"},
		"a path as source":  {"acme/mount", "/sys/fs/bpf", "slipway-/../../x", "does not start with slipway-"},
		"our directory":     {"acme/dir", "/run/acme", "", ""},
		"the kernel's":      {"acme/dir", "/proc/1", "", "below /proc"},
		"a directory above": {"acme/dir", "/run/acme/..", "", "not an absolute, clean path"},
	} {
		err := h.Owns(journal.Entry{Kind: c.kind, Object: c.path, After: journal.State{Value: c.source}})
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.want, name)
		}
	}
}
