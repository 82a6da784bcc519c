// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/journaltest"
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
		Scope:     cleanup.AllState,
	}
}

// foreignFiles resemble the agent's files.
var foreignFiles = []string{
	"etc/cni/net.d/10-foreign.conflist", "etc/cni/net.d/05-cilium.config", "etc/cni/net.d/05-cilium.conflist.bak", "etc/cni/net.d/x05-cilium.conf",
	"etc/cni/net.d/nothing.cilium_bak.d", "etc/cni/net.d/.cilium_bak", "etc/cni/net.d/dir.conf.cilium_bak/",
	"opt/cni/bin/loopback", "opt/cni/bin/cilium-cni-foreign", "opt/cni/bin/portmap",
	"etc/sysctl.d/99-zzz-override.conf", "etc/sysctl.d/99-override_cilium_rp_filter.conf",
}

func TestCLN2_Files(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	files(t, dir, foreignFiles...)
	files(t, dir, "target", "etc/cni/net.d/80-taken.conf", "etc/cni/net.d/80-taken.conf.cilium_bak", "etc/cni/net.d/81-twice.conf.cilium_bak.cilium_bak")
	before := tree(t, dir)
	files(t, dir,
		"etc/cni/net.d/05-cilium.conflist", "etc/cni/net.d/05-cilium.conf -> ../../../target", "etc/cni/net.d/05-cilium.conf.cilium_bak",
		"etc/cni/net.d/10-calico.conflist.cilium_bak", "etc/cni/net.d/87-podman.conf.cilium_bak",
		"opt/cni/bin/cilium-cni", "opt/cni/bin/.cilium-cni.new", "opt/cni/bin/cilium-cni.old",
		"etc/sysctl.d/99-zzz-override_cilium.conf")
	c := filesOnly(dir)
	dirty := tree(t, dir)
	inv, err := c.Inventory(context.Background())
	require.NoError(t, err)
	require.Equal(t, dirty, tree(t, dir))
	conf, bin := filepath.Join(dir, "etc/cni/net.d"), filepath.Join(dir, "opt/cni/bin")
	require.Equal(t, []string{
		"configuration set aside " + conf + "/10-calico.conflist.cilium_bak", "configuration set aside " + conf + "/87-podman.conf.cilium_bak",
		"file " + conf + "/05-cilium.conflist", "file " + conf + "/05-cilium.conf",
		"file " + bin + "/cilium-cni", "file " + bin + "/.cilium-cni.new", "file " + bin + "/cilium-cni.old",
		"file " + dir + "/etc/sysctl.d/99-zzz-override_cilium.conf",
		"file " + conf + "/05-cilium.conf.cilium_bak",
	}, objects(inv.Items))
	require.Equal(t, []cleanup.Item{
		{Kind: "configuration set aside", Object: conf + "/80-taken.conf.cilium_bak", Detail: "80-taken.conf exists"},
		{Kind: "configuration set aside", Object: conf + "/81-twice.conf.cilium_bak.cilium_bak", Detail: "it was set aside twice"},
		{Kind: "configuration set aside", Object: conf + "/dir.conf.cilium_bak", Detail: "it is a directory"},
	}, inv.Left)
	changes, err := c.Check(context.Background())
	require.NoError(t, err)
	require.Contains(t, changes, "restore configuration set aside "+conf+"/10-calico.conflist.cilium_bak")

	require.NoError(t, c.Remove(context.Background(), inv.Items))
	for name, want := range map[string]string{"10-calico.conflist": "etc/cni/net.d/10-calico.conflist.cilium_bak", "87-podman.conf": "etc/cni/net.d/87-podman.conf.cilium_bak"} {
		got, err := os.ReadFile(filepath.Join(conf, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		require.NoError(t, os.Remove(filepath.Join(conf, name)))
	}
	require.Equal(t, before, tree(t, dir))
	apply(t, c)
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
}

// An object that replaced a file, or took the name that a file should regain, stays.
func TestCLN1_FileThatWasReplacedIsLeft(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	files(t, dir, "etc/cni/net.d/05-cilium.conflist", "etc/cni/net.d/10-a.conf.cilium_bak", "etc/cni/net.d/20-b.conf.cilium_bak", "etc/cni/net.d/30-c.conf.cilium_bak", "new")
	conf := filepath.Join(dir, "etc/cni/net.d")
	c := filesOnly(dir)
	inv, err := c.Inventory(context.Background())
	require.NoError(t, err)
	require.Len(t, inv.Items, 4)
	require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(conf, "05-cilium.conflist")))
	require.NoError(t, os.WriteFile(filepath.Join(conf, "10-a.conf"), []byte("came in between"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(conf, "30-c.conf.cilium_bak")))
	err = c.Remove(context.Background(), inv.Items)
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

func TestCLN4_FileThatCannotBeRemovedIsNamedAndTheRestGoes(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	conf := filepath.Join(dir, "etc/cni/net.d")
	files(t, dir, "etc/cni/net.d/05-cilium.conflist", "etc/cni/net.d/05-cilium.conf", "etc/cni/net.d/04-cilium.conflist/x",
		"opt/cni/bin/cilium-cni", "opt/cni/bin/cilium-cni.old")
	immutable(t, filepath.Join(conf, "05-cilium.conflist"))
	busy := filepath.Join(dir, "opt/cni/bin/cilium-cni.old")
	c := filesOnly(dir)
	inv, err := c.Inventory(context.Background())
	require.NoError(t, err)
	require.Equal(t, []cleanup.Item{{Kind: "file", Object: conf + "/04-cilium.conflist", Detail: "it is a directory"}}, inv.Left)
	require.NoError(t, unix.Mount("/dev/null", busy, "", unix.MS_BIND, ""))
	err = c.Remove(context.Background(), inv.Items)
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorContains(t, err, "remove file "+conf+"/05-cilium.conflist: remove "+conf+"/05-cilium.conflist: operation not permitted (it is immutable: chattr -i)")
	require.ErrorContains(t, err, "remove file "+busy+": another one has taken its place")
	require.NoFileExists(t, filepath.Join(conf, "05-cilium.conf"))
	require.NoFileExists(t, filepath.Join(dir, "opt/cni/bin/cilium-cni"))

	inv, err = c.Inventory(context.Background())
	require.NoError(t, err)
	require.Contains(t, inv.Left, cleanup.Item{Kind: "file", Object: busy, Detail: "something is mounted on it"})
}

// The directory of configurations may be reached by symbolic links.
func TestCLN5_FilesBelowLinks(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	files(t, dir, "real/05-cilium.conf", "real/05-cilium.conf.cilium_bak", "real/10-a.conf.cilium_bak", "etc/cni/net.d -> ../../real")
	apply(t, filesOnly(dir))
	require.Equal(t, "10-a.conf\n", run(t, "find", filepath.Join(dir, "real"), "-mindepth", "1", "-printf", "%P\n"))
}

func TestCLN8_FilesOfARecordStay(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	conf := filepath.Join(dir, "etc/cni/net.d")
	files(t, dir, "etc/cni/net.d/05-cilium.conflist", "etc/cni/net.d/05-cilium.conf", "etc/cni/net.d/10-a.conf.cilium_bak", "etc/cni/net.d/20-b.conf.cilium_bak", "opt/cni/bin/cilium-cni", "run/cilium/made/x", "run/cilium/mounted/y", "run/cilium/old")
	state := filepath.Join(dir, "state")
	require.NoError(t, os.Mkdir(state, 0o700))
	j := journaltest.Open(t, state)
	require.NoError(t, j.Begin(t.Context(),
		journal.Entry{Kind: "cni/file", Object: conf + "/05-cilium.conflist"},
		journal.Entry{Kind: "cni/aside", Object: conf + "/10-a.conf"},
		journal.Entry{Kind: "cni/file", Object: dir + "/opt/cni/bin/cilium-cni"},
		journal.Entry{Kind: "sysctl/value", Object: "net.ipv4.ip_forward"},
		journal.Entry{Kind: "bpffs/dir", Object: dir + "/run/cilium/made"},
		journal.Entry{Kind: "bpffs/mount", Object: dir + "/run/cilium/mounted"}))
	c := filesOnly(dir)
	c.Ownership.StateDirs = []string{filepath.Join(dir, "run/cilium")}
	want := []string{
		"remove state directory " + dir + "/run/cilium", // its content, except recorded paths
		"restore configuration set aside " + conf + "/20-b.conf.cilium_bak",
		"remove file " + conf + "/05-cilium.conf",
	}
	ctx := journal.With(t.Context(), j)
	changes, err := c.Check(ctx)
	require.NoError(t, err)
	require.Equal(t, want, changes)

	plan := bootstrap.Plan{ // the step records nothing, and the plan has a journal
		Host:    hostns.Host{Proc: testns.Proc(t, "/proc/self"), LockFile: filepath.Join(t.TempDir(), "lock")},
		Journal: &journal.Node{Dir: state, Agent: "agent", NoOwner: true},
		Steps:   []bootstrap.Step{{Name: "cleanup", Action: c, NoUndo: true}},
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

	require.NoError(t, os.WriteFile(filepath.Join(state, "agent.journal"), []byte(`{"schema": 99}`), 0o600))
	inv, err := c.Inventory(ctx)
	require.ErrorContains(t, err, "cleanup: paths to keep: ")
	require.Empty(t, inv.Items)
	require.ErrorContains(t, c.Apply(ctx), "paths to keep")
}

func TestCLN8_FilesAndNetfilterAreNotBPFState(t *testing.T) {
	enterNetfilter(t, "iptables-nft", "iptables-legacy", "ipset")
	dir := t.TempDir()
	files(t, dir, "etc/cni/net.d/05-cilium.conflist", "etc/cni/net.d/10-a.conf.cilium_bak", "run/cilium/x")
	rules(t, "iptables-nft", "*filter", ":CILIUM_x - [0:0]", "COMMIT")
	rules(t, "iptables-legacy", "*filter", ":CILIUM_x - [0:0]", "COMMIT")
	run(t, "ipset", "create", "cilium_x", "hash:ip")
	c := filesOnly(dir)
	c.Ownership.ChainPrefixes, c.Ownership.IPSetPrefixes = []string{"CILIUM_"}, []string{"cilium_"}
	c.Ownership.StateDirs = []string{filepath.Join(dir, "run/cilium")}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "cgroup"), 0o700))
	require.NoError(t, unix.Mount("tmpfs", filepath.Join(dir, "cgroup"), "tmpfs", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(filepath.Join(dir, "cgroup"), 0) })
	c.Ownership.Mounts = []cleanup.MountRule{{Path: filepath.Join(dir, "cgroup"), Type: "tmpfs"}}
	c.Ownership = excepting(c.Ownership)
	c.Scope = cleanup.BPFState
	changes, err := c.Check(context.Background())
	require.NoError(t, err)
	require.Empty(t, changes)
	c.Scope = cleanup.AllState
	changes, err = c.Check(context.Background())
	require.NoError(t, err)
	require.Len(t, changes, 7)
	apply(t, c)
}

// The preset knows all files that Cilium's own post-uninstall-cleanup removes (cniConfigV1 to
// V5 of cilium-dbg/cmd/cleanup.go, 1.20.2), and the programs that an init container of the
// chart copies beside the plugins and, if killed, leaves there.
func TestCLN12_FilesOfCiliumsOlderVersions(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	files(t, dir, foreignFiles...)
	before := tree(t, dir)
	for _, name := range []string{"10-cilium-cni.conf", "00-cilium-cni.conf", "05-cilium-cni.conf", "05-cilium.conf", "05-cilium.conflist"} {
		files(t, dir, "etc/cni/net.d/"+name)
	}
	files(t, dir, "opt/cni/bin/cilium-cni", "opt/cni/bin/cilium-mount", "opt/cni/bin/cilium-sysctlfix")
	apply(t, filesOnly(dir))
	require.Equal(t, before, tree(t, dir))
}
