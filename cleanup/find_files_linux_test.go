// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

// filesOnly is the part of Cilium's ownership that concerns files, with the node's directories
// below dir.
func filesOnly(dir string) cleanup.Leftovers {
	own := cleanup.Cilium()
	for _, place := range []string{"/etc/cni/net.d", "/opt/cni/bin", "/etc/sysctl.d"} {
		own = own.Moved(place, filepath.Join(dir, place))
	}
	return cleanup.Leftovers{
		Ownership: cleanup.Ownership{Agent: own.Agent, Files: own.Files, SetAside: own.SetAside},
		Scope:     "all-state",
	}
}

// An object that replaced a file, or took the name that a file should regain, stays.
func TestCLN1_FileThatWasReplacedIsLeft(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	files(t, dir, "etc/cni/net.d/05-cilium.conflist", "etc/cni/net.d/10-a.conf.cilium_bak", "etc/cni/net.d/20-b.conf.cilium_bak", "etc/cni/net.d/30-c.conf.cilium_bak", "new")
	conf := filepath.Join(dir, "etc/cni/net.d")
	c := filesOnly(dir)
	inv := listed(t, context.Background(), c)
	require.Len(t, inv.Items, 4)
	require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(conf, "05-cilium.conflist")))
	require.NoError(t, os.WriteFile(filepath.Join(conf, "10-a.conf"), []byte("came in between"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(conf, "30-c.conf.cilium_bak")))
	err := c.Remove(context.Background(), inv.Items)
	require.ErrorContains(t, err, "remove file "+conf+"/05-cilium.conflist: another one has taken its place")
	require.ErrorContains(t, err, "restore configuration set aside "+conf+"/10-a.conf.cilium_bak: 10-a.conf exists by now; left as it is")
	for name, want := range map[string]string{
		"05-cilium.conflist": "new", "10-a.conf": "came in between",
		"10-a.conf.cilium_bak": "etc/cni/net.d/10-a.conf.cilium_bak", "20-b.conf": "etc/cni/net.d/20-b.conf.cilium_bak",
	} {
		got, err := os.ReadFile(filepath.Join(conf, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got), name)
	}
	require.NoFileExists(t, filepath.Join(conf, "30-c.conf"))
}

func TestCLN8_FilesOfARecordStay(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	conf := filepath.Join(dir, "etc/cni/net.d")
	files(t, dir, "etc/cni/net.d/05-cilium.conflist", "etc/cni/net.d/05-cilium.conf", "etc/cni/net.d/10-a.conf.cilium_bak", "etc/cni/net.d/20-b.conf.cilium_bak", "opt/cni/bin/cilium-cni", "run/cilium/made/x", "run/cilium/mounted/y", "run/cilium/old")
	state := testledger.Dir(t)
	mount := &ledger.Kind{Name: "mount", Space: "path",
		Read: func(context.Context, string) (ledger.State, error) { return ledger.State{Type: "mount"}, nil }}
	absent := func(path string) ledger.Want { return ledger.Want{Kind: ledger.File(), Object: path} }
	book := testledger.Open(t, state)
	claim(t, book,
		found(ledger.File(), conf+"/05-cilium.conflist"),
		absent(conf+"/10-a.conf"),
		found(ledger.File(), dir+"/opt/cni/bin/cilium-cni"),
		found(ledger.Dir(), dir+"/run/cilium/made"),
		found(mount, dir+"/run/cilium/mounted"))
	c := filesOnly(dir)
	c.Ownership.StateDirs = []string{filepath.Join(dir, "run/cilium")}
	want := []string{
		"remove state directory " + dir + "/run/cilium", // its content, except recorded paths
		"restore configuration set aside " + conf + "/20-b.conf.cilium_bak",
		"remove file " + conf + "/05-cilium.conf",
	}
	ctx := ledger.With(t.Context(), book)
	changes, err := c.Check(ctx)
	require.NoError(t, err)
	require.Equal(t, want, changes)

	plan := bootstrap.Plan{
		Host:   hostns.Host{Proc: testns.Proc(t, "/proc/self"), LockFile: filepath.Join(t.TempDir(), "lock")},
		Ledger: &ledger.Ledger{Dir: state, Agent: testledger.Agent, NoOwner: true},
		Steps:  []bootstrap.Step{{Name: "cleanup", Action: c}},
	}
	report, err := plan.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, report.Results[0].Changes)
	_, err = plan.Apply(t.Context())
	require.NoError(t, err)
	changes, err = c.Check(ctx)
	require.NoError(t, err)
	require.Empty(t, changes)
	require.Equal(t, "made\nmounted\nmounted/y\n", strings.Join(sorted(strings.SplitAfter(
		run(t, "find", dir+"/run/cilium", "-mindepth", "1", "-printf", "%P\n"), "\n")), ""))
	require.FileExists(t, filepath.Join(conf, "10-a.conf.cilium_bak"))

	damage(t, filepath.Join(state, "ledger"), "opt/cni/bin/cilium-cni")
	changes, err = c.Check(ctx)
	require.NoError(t, err, "a damaged record says what it is about")
	require.Empty(t, changes)
	damage(t, filepath.Join(state, "ledger"), "schema")
	inv, err := c.Inventory(ctx)
	require.ErrorContains(t, err, "cleanup: paths to keep: ")
	require.Empty(t, inv.Items)
	require.ErrorContains(t, c.Apply(ctx), "paths to keep")
}

// found wants an object as it is there.
func found(k *ledger.Kind, path string) ledger.Want {
	now, _ := k.Read(context.Background(), path)
	return ledger.Want{Kind: k, Object: path, To: now, Loose: true}
}

func claim(t testing.TB, b *ledger.Book, wants ...ledger.Want) {
	t.Helper()
	applied, err := b.Apply(t.Context(), "step", ledger.Wants{List: wants})
	require.NoError(t, err)
	require.Empty(t, applied.Changes)
}

// damage changes the last of a file's occurrences of a text.
func damage(t testing.TB, path, text string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.LastIndex(raw, []byte(text))
	require.NotEqual(t, -1, at)
	raw[at] ^= 1
	require.NoError(t, os.WriteFile(path, raw, 0o600))
}

// What only another agent wants is no leftover of this one, and listed as left with what
// removes it. What both want is this agent's business, and not cleanup's.
func TestCLN12_WhatAnotherAgentWantsIsListedAsLeft(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	conf := filepath.Join(dir, "etc/cni/net.d")
	files(t, dir, "etc/cni/net.d/05-cilium.conflist", "etc/cni/net.d/10-a.conf.cilium_bak", "etc/cni/net.d/05-cilium.conf", "opt/cni/bin/cilium-cni", "run/cilium/bpf/")
	mounted := filepath.Join(dir, "run/cilium/bpf")
	require.NoError(t, unix.Mount("bpf", mounted, "tmpfs", 0, ""))
	mount := &ledger.Kind{Name: "mount", Space: "path",
		Read: func(context.Context, string) (ledger.State, error) { return ledger.State{Type: "mount"}, nil }}
	state := testledger.Dir(t)
	theirs, ours := testledger.OpenFor(t, state, "other", mount), testledger.Open(t, state, mount)
	both := found(ledger.File(), conf+"/05-cilium.conf")
	claim(t, theirs, both, found(ledger.File(), conf+"/05-cilium.conflist"), ledger.Want{Kind: ledger.File(), Object: conf + "/10-a.conf"},
		found(ledger.File(), dir+"/opt/cni/bin/cilium-cni"), found(mount, mounted))
	claim(t, ours, both)
	c := filesOnly(dir)
	c.Ownership.StateDirs = []string{filepath.Join(dir, "run/cilium")}
	inv := listed(t, ledger.With(t.Context(), ours), c)
	require.Empty(t, inv.Items)
	require.ElementsMatch(t, []string{
		"mount " + mounted, "configuration set aside " + conf + "/10-a.conf.cilium_bak",
		"file " + conf + "/05-cilium.conflist", "file " + dir + "/opt/cni/bin/cilium-cni"}, objects(inv.Left))
	for _, left := range inv.Left {
		require.Equal(t, "agent other wants it: uninstalling that removes it", left.Detail)
	}
}
