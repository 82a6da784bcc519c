// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/sysctl"
)

// marked opens an agent's journal in a new directory.
func (n node) marked(t *testing.T, agent, dir string) *journal.Journal {
	t.Helper()
	j, err := (&journal.Node{Dir: dir, NoOwner: true, Agent: agent, Handlers: []journal.Handler{sysctl.Handler{Kernel: sysctl.Kernel{Files: n.Kernel}, Dir: n.dir()}}}).Open(context.Background(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

// A drop-in names its agent and journal, so that it is found when the record is
// lost.
func TestPLAN6_ADropInSaysWhoMadeIt(t *testing.T) {
	n := newNode(t)
	dir := filepath.Join(t.TempDir(), `state "1"`)
	j := n.marked(t, "acme", dir)
	d := n.dropIn()
	d.Journal = j.Step("sysctl")
	require.NoError(t, d.Apply(t.Context()))
	first, _, _ := strings.Cut(read(t, n.file()), "\n")
	require.Equal(t, `# Written by slipway, which puts changes back: agent "acme", journal in "`+strings.ReplaceAll(dir, `"`, `\"`)+`".`, first)
	orphans := func(j *journal.Journal) []journal.Marked {
		t.Helper()
		found, err := j.Orphans(t.Context())
		require.NoError(t, err)
		return found
	}
	require.Empty(t, orphans(j))
	want := []journal.Marked{{Mark: journal.Mark{Agent: "acme"}, Kind: "sysctl/file", Object: n.file(), Dir: dir, Remove: "rm " + n.file()}}
	other := filepath.Join(t.TempDir(), "other")
	require.Equal(t, want, orphans(n.marked(t, "acme", other)))
	require.Empty(t, orphans(n.marked(t, "another", other)))

	// A file that another agent has marked, or whose record is lost, needs no change.
	d.Journal = n.marked(t, "another", other).Step("sysctl")
	changes, err := d.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, changes)

	for line, ours := range map[string]bool{
		"# Written by slipway, which puts changes back.":                                true, // by an older build
		"# Written by slipway, which puts changes back: agent \"\", journal in \"/x\".": true,
		"# Written by slipway, which puts changes back: agent acme, journal in /x.":     false,
		"# written by another": false,
		"":                     false,
	} {
		require.NoError(t, os.WriteFile(n.file(), []byte(line+"\nkernel.panic = 1\n"), 0o644))
		require.Equal(t, ours, len(orphans(n.marked(t, "acme", other))) == 1, line)
		changes, err := d.Check(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, changes, "its settings differ")
	}
}
