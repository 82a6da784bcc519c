// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// A drop-in names its agent and state directory, so that it is found when the record is
// lost.
func TestPLAN6_PLAN18_ADropInSaysWhoMadeIt(t *testing.T) {
	n := newNode(t)
	dir := filepath.Join(t.TempDir(), `state "1"`)
	marked := func(agent, dir string) book {
		return book{opened(t, dir, agent, n.Kernel, n.Kernel, n.dir()), "sysctl"}
	}
	d := n.dropIn()
	d.book = marked("acme", dir)
	require.NoError(t, d.Apply(t.Context()))
	first, _, _ := strings.Cut(read(t, n.file()), "\n")
	require.Equal(t, `# Written by slipway, which puts changes back: agent "acme", recorded in "`+strings.ReplaceAll(dir, `"`, `\"`)+`".`, first)
	orphans := func(b book) []ledger.Marked {
		t.Helper()
		found, err := b.Orphans(t.Context())
		require.NoError(t, err)
		return found
	}
	require.Empty(t, orphans(d.book))
	want := []ledger.Marked{{Kind: "sysctl.d", Object: n.file(), Agent: "acme", Dir: dir, Remove: "rm " + n.file()}}
	other := filepath.Join(t.TempDir(), "other")
	require.Equal(t, want, orphans(marked("acme", other)))

	// A file that another agent has marked, or whose record is lost, needs no change.
	d.book = marked("another", other)
	require.Empty(t, check(t, d))

	for line, ours := range map[string]bool{
		"# Written by slipway, which puts changes back.":                                 true, // nothing recorded it
		"# Written by slipway, which puts changes back: agent \"\", recorded in \"/x\".": true,
		"# Written by slipway, which puts changes back: agent acme, recorded in /x.":     false,
		"# written by another": false,
		"":                     false,
	} {
		require.NoError(t, os.WriteFile(n.file(), []byte(line+"\nkernel.panic = 1\n"), 0o644))
		require.Equal(t, ours, len(orphans(marked("acme", other))) == 1, line)
		require.NotEmpty(t, check(t, d), "its settings differ")
	}
}
