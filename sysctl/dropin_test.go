// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/sysctl"
)

const ciliumFile = "99-zzz-override_cilium.conf"

// node is a directory tree with a fake kernel.
type node struct {
	*bootstraptest.Kernel
	root string
	t    *testing.T
}

func newNode(t *testing.T, links ...string) node {
	t.Helper()
	return newNodeAt(t, t.TempDir(), links...)
}

func newNodeAt(t *testing.T, root string, links ...string) node {
	t.Helper()
	n := node{bootstraptest.NewKernel(links...), root, t}
	require.NoError(t, os.MkdirAll(n.dir(), 0o755))
	return n
}

// newLastingNode makes a node whose files survive a reboot: files in /var/tmp do
// (hier(7)), while a test's temporary directory may be in memory.
func newLastingNode(t *testing.T, links ...string) node {
	t.Helper()
	root, err := os.MkdirTemp("/var/tmp", "slipway-test-")
	if err != nil {
		return newNode(t, links...)
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	return newNodeAt(t, root, links...)
}

func (n node) dir() string   { return filepath.Join(n.root, "etc") }
func (n node) file() string  { return filepath.Join(n.dir(), ciliumFile) }
func (n node) state() string { return filepath.Join(n.root, "state") }
func (n node) book(step string) book {
	n.t.Helper()
	return book{opened(n.t, n.state(), "agent", n.Kernel, n.Kernel, n.dir()), step}
}
func (n node) dropIn() recordedFile { return n.dropInWith(nil) }
func (n node) dropInWith(r sysctl.Reloader) recordedFile {
	d := sysctl.DropIn{Dir: n.dir(), Kernel: sysctl.Kernel{Files: n.Kernel}}.Reading(n.dir(), filepath.Join(n.root, "usr"))
	if r != nil {
		d = d.Reloads(sysctl.Instead(r))
	}
	return cilium(recordedFile{d, n.book("drop-in")})
}

// cilium fills in the fields that d leaves empty.
func cilium(d recordedFile) recordedFile {
	d.Name = cmp.Or(d.Name, sysctl.Cilium().Name)
	if d.Settings == nil {
		d.Settings = sysctl.Cilium().Settings
	}
	return d
}

func (n node) put(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(n.root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

func settingLines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line[0] != '#' {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

func TestSYS3_AMissingDirectoryIsMadeUnlessItShallExist(t *testing.T) {
	n := newNode(t)
	d := n.dropIn()
	d.Dir, d.ExistingDir = filepath.Join(n.root, "none"), true
	_, err := d.Check(t.Context())
	require.ErrorContains(t, err, "directory "+d.Dir+" does not exist, and must not be made")
	require.ErrorContains(t, d.Apply(t.Context()), "directory "+d.Dir+" does not exist, and must not be made")
	require.Empty(t, n.Writes())
	require.NoDirExists(t, d.Dir)

	recorded := d.book
	for name, b := range map[string]book{"recorded": recorded, "not recorded": {}} {
		d.ExistingDir, d.book = false, b
		d.Dir = filepath.Join(n.root, name)
		require.Equal(t, "make directory "+d.Dir, check(t, d)[0])
		require.NoError(t, d.Apply(t.Context()))
		require.FileExists(t, filepath.Join(d.Dir, ciliumFile))
		require.Empty(t, check(t, d))
		if runtime.GOOS != "windows" {
			info, err := os.Stat(d.Dir)
			require.NoError(t, err)
			require.Equal(t, os.ModeDir|0o755, info.Mode())
		}
	}
	d.Dir, d.book = filepath.Join(n.root, "recorded"), recorded
	require.Equal(t, []string{"remove file " + filepath.Join(d.Dir, ciliumFile), "remove directory " + d.Dir}, checkRevert(t, d))
	require.NoError(t, d.Revert(t.Context()))
	require.NoDirExists(t, d.Dir)
	d.Dir = n.file()
	require.NoError(t, os.WriteFile(n.file(), nil, 0o600))
	require.ErrorContains(t, d.Apply(t.Context()), "not a directory")
}

func TestSYS3_ALinkInItsPlaceIsReplaced(t *testing.T) {
	n := newNode(t)
	d := n.dropIn()
	require.NoError(t, d.Apply(t.Context()))
	target := n.put(t, "target", read(t, n.file())) // even if its content is right
	require.NoError(t, d.Revert(t.Context()))
	require.NoError(t, os.Symlink(target, n.file()))
	d.Settings = []sysctl.Setting{{Key: "net.ipv4.ip_forward", Value: "1"}}
	right := read(t, target)

	require.NoError(t, d.Apply(t.Context()))
	info, err := os.Lstat(n.file())
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular())
	require.Equal(t, right, read(t, target), "the link's target is not written")
	require.NoError(t, d.Revert(t.Context()))
	link, err := os.Readlink(n.file())
	require.NoError(t, err)
	require.Equal(t, target, link)
}

func TestSYS3_WhatMakesNoFileIsAnError(t *testing.T) {
	n := newNode(t)
	one := func(key sysctl.Key, value string) []sysctl.Setting { return []sysctl.Setting{{Key: key, Value: value}} }
	for want, d := range map[string]sysctl.DropIn{
		"drop-in: no name given":                  {Settings: sysctl.Forwarding()},
		`drop-in "90-x.conf": no settings given`:  {Name: "90-x.conf"},
		`has the element ..`:                      {Name: "90-x.conf", Settings: one("net/../x", "1")},
		`"net.a=b.c = 1" cannot stand`:            {Name: "90-x.conf", Settings: one("net.a=b.c", "1")},
		`"#net.b.c = 1" cannot stand`:             {Name: "90-x.conf", Settings: one("#net.b.c", "1")},
		`kernel.core_pattern = |/x" cannot stand`: {Name: "90-x.conf", Settings: one("net.b.c", "1\nkernel.core_pattern = |/x")},
		`"net.b.c = \x00" cannot stand`:           {Name: "90-x.conf", Settings: one("net.b.c", "\x00")},
		`name "../x.conf" is not a file name`:     {Name: "../x.conf", Settings: sysctl.Forwarding()},
		`name "cilium" is not a file name`:        {Name: "cilium", Settings: sysctl.Forwarding()},
		`name ".conf" is not a file name`:         {Name: ".conf", Settings: sysctl.Forwarding()},
	} {
		d.Dir, d.Kernel = n.dir(), sysctl.Kernel{Files: n.Kernel}
		recorded := recordedFile{d, n.book("drop-in")}
		_, checkErr := recorded.Check(t.Context())
		_, adviseErr := recorded.Advise(t.Context())
		for _, err := range []error{checkErr, adviseErr, recorded.Apply(t.Context())} {
			require.ErrorContains(t, err, want)
		}
	}
	left, err := os.ReadDir(n.dir())
	require.NoError(t, err)
	require.Empty(t, left)
	require.Empty(t, n.Writes())
	require.NoDirExists(t, n.state())
}

func TestSYS4_ARightFileAndAWrongValueIsAChange(t *testing.T) {
	n := newNode(t, "lxc1")
	require.NoError(t, n.dropIn().Apply(t.Context()))
	n.PutValue("net.ipv4.conf.all.rp_filter", "2")
	n.PutValue("net.ipv4.conf.lxc1.rp_filter", "1")
	want := []string{"set net.ipv4.conf.lxc1.rp_filter = 0 (is 1)", "set net.ipv4.conf.all.rp_filter = 0 (is 2)"}
	require.Equal(t, want, check(t, n.dropIn()))
	before, err := os.Stat(n.file())
	require.NoError(t, err)
	require.NoError(t, n.dropIn().Apply(t.Context()))
	require.Empty(t, check(t, n.dropIn()))
	after, err := os.Stat(n.file())
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "the file is not rewritten")
}

func TestSYS4_DirectSetsOnlyOurKeys(t *testing.T) {
	n := newNode(t, "lxc1", "lxc2", "lxc3", "lxc4")
	n.put(t, "usr/50-distribution.conf", "net.ipv4.conf.lxc2.rp_filter = 1\n-net.ipv4.conf.lxc3.rp_filter\nkernel.timer_migration = 0\n-net.ipv4.conf.lxc4.rp_filter\n")
	d := n.dropIn()
	d.Settings = []sysctl.Setting{{Key: "net.ipv4.conf.lxc*.rp_filter", Value: "2"}, {Key: "net.ipv4.conf.lxc4.rp_filter", Value: "2"}}
	require.NoError(t, d.Apply(t.Context()))
	require.Equal(t, []string{"net.ipv4.conf.lxc1.rp_filter = 2", "net.ipv4.conf.lxc4.rp_filter = 2"}, n.Writes(),
		"a glob leaves other files' explicit keys alone; what is excluded from globs can be named")
	advice := advise(t, d)
	require.Equal(t, []string{
		filepath.Join(n.root, "usr", "50-distribution.conf") + ":1 sets net.ipv4.conf.lxc2.rp_filter = 1, which overrides 2 at the next boot",
		filepath.Join(n.root, "usr", "50-distribution.conf") + ":2 excludes net.ipv4.conf.lxc3.rp_filter from globs, and so from " + n.file(),
	}, advice)
}

// manager stands in for systemd: it applies all files to the fake.
type manager struct {
	node
	err, reloading error
	reloads        int
}

func (m *manager) Reloading(context.Context) (string, error) { return "restart it", m.reloading }

func (m *manager) Reload(context.Context) error {
	m.reloads++
	if m.err != nil {
		return m.err
	}
	all, err := sysctl.Effective(filepath.Join(m.root, "etc"), filepath.Join(m.root, "usr"))
	if err != nil {
		return err
	}
	for _, a := range all {
		a.IfExists = true
		err = errors.Join(err, sysctl.Kernel{Files: m.Kernel}.Set(a.Setting))
	}
	return err
}

func TestSYS4_ReloadListsWhatElseItChanges(t *testing.T) {
	n := newNode(t, "eth0", "lxc1")
	other := n.put(t, "usr/50-distribution.conf", "net.ipv4.conf.all.rp_filter = 1\nnet.ipv4.conf.eth*.rp_filter = 2\nkernel.timer_migration = 1\nnot.a.key = 7\n")
	n.PutValue("net.ipv4.conf.all.rp_filter", "1")
	n.PutValue("kernel.timer_migration", "0") // an administrator's runtime value
	before := n.Values()
	m := &manager{node: n}
	d := n.dropInWith(m)
	require.Equal(t, []string{
		"set net.ipv4.conf.all.rp_filter = 0 (is 1)",
		"write file " + n.file() + ", and restart it",
		"set net.ipv4.conf.eth0.rp_filter = 2 (is 0), by " + other + ":2",
		"set kernel.timer_migration = 1 (is 0), by " + other + ":3",
	}, check(t, d))
	require.NoError(t, d.Apply(t.Context()))
	require.Equal(t, 1, m.reloads)
	require.Equal(t, "2", n.Values()["net.ipv4.conf.eth0.rp_filter"])
	require.Empty(t, check(t, d))

	require.NoError(t, d.Apply(t.Context()))
	require.Equal(t, 1, m.reloads, "no changes, no reload")
	n.PutValue("kernel.timer_migration", "0")
	require.Empty(t, check(t, d), "other files' values alone are no reason to reload")
	n.PutValue("kernel.timer_migration", "1")

	require.NoError(t, d.Revert(t.Context()))
	require.Equal(t, before, n.Values(), "values that the reload changed are put back too")
	require.NoFileExists(t, n.file())
}

func TestSYS4_AHigherFileWins(t *testing.T) {
	n := newNode(t, "lxc1")
	higher := n.put(t, "etc/zzz.conf", "net.ipv4.conf.all.rp_filter = 1\n")
	n.PutValue("net.ipv4.conf.all.rp_filter", "1")
	for i, reload := range []sysctl.Reloader{nil, &manager{node: n}, &manager{node: n}} {
		d := n.dropInWith(reload)
		if i == 2 {
			d.Settings = []sysctl.Setting{{Key: "net.ipv4.conf.all.rp_filter", Value: "0", IgnoreFailure: true}}
		}
		require.NoError(t, d.Apply(t.Context()))
		require.Equal(t, "0", n.Values()["net.ipv4.conf.all.rp_filter"], "ours is read back, and set")
		require.Empty(t, check(t, d))
		require.Equal(t, []string{higher + ":1 sets net.ipv4.conf.all.rp_filter = 1, which overrides 0 at the next boot"}, advise(t, d))
		require.NoError(t, d.Revert(t.Context()))
		require.Equal(t, "1", n.Values()["net.ipv4.conf.all.rp_filter"])
	}
}

// ENOSYS and EOPNOTSUPP match errors.ErrUnsupported, but are failures.
func TestSYS4_AFailedReloadIsAnError(t *testing.T) {
	for _, failure := range []error{errors.New("the job ended with failed"), syscall.ENOSYS, syscall.EOPNOTSUPP} {
		n := newNode(t)
		n.PutValue("net.ipv4.conf.all.rp_filter", "1")
		d := n.dropInWith(&manager{node: n, err: failure})
		require.ErrorIs(t, d.Apply(t.Context()), failure)
		require.Equal(t, "0", n.Values()["net.ipv4.conf.all.rp_filter"], "ours is set nevertheless")
		require.NotEmpty(t, check(t, d), "the reload is still to be done")

		n.PutValue("net.ipv4.conf.all.rp_filter", "1")
		m := &manager{node: n, reloading: failure}
		_, err := n.dropInWith(m).Check(t.Context())
		require.ErrorIs(t, err, failure)
		require.ErrorIs(t, n.dropInWith(m).Apply(t.Context()), failure)
		require.Zero(t, m.reloads)
	}
}

// A service that is restarted for each value would soon have been started too often.
func TestSYS4_ManyValuesThatOnlyTheReloaderMayWriteNeedOneReload(t *testing.T) {
	n := newNode(t, "lxc1", "lxc2", "lxc3")
	n.Fail = readOnly
	for _, right := range []bool{false, true} { // the file
		m := &manager{node: n, err: errors.New("the job failed")}
		d := n.dropInWith(m)
		d.Settings = []sysctl.Setting{{Key: "net.ipv4.conf.lxc*.rp_filter", Value: "2"}, {Key: bad, Value: "2"}}
		if right {
			d.Name = "50-right.conf"
			content := "# Written by slipway, which puts changes back.\n" + fmt.Sprintf("%s\n%s\n", d.Settings[0].Line(), d.Settings[1].Line())
			require.NoError(t, os.WriteFile(filepath.Join(d.Dir, d.Name), []byte(content), 0o644))
		}
		require.ErrorContains(t, d.Apply(t.Context()), "the job failed")
		require.Equal(t, 1, m.reloads)
	}
}

func TestSYS6_LoweringOnlyOneOfTwoIsSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		all, eth0, lxc1 string
		settings        []sysctl.Setting
		want            []string
	}{
		"all stays higher": {
			all: "1", lxc1: "1",
			settings: []sysctl.Setting{{Key: "net.ipv4.conf.lxc*.rp_filter", Value: "0"}},
			want:     []string{"lower rp_filter of lxc1 has no effect while net.ipv4.conf.all.rp_filter = 1: the kernel takes the larger"},
		},
		"the link stays higher": {
			all: "1", eth0: "2", lxc1: "1",
			settings: []sysctl.Setting{{Key: "net.ipv4.conf.all.rp_filter", Value: "0"}, {Key: "net.ipv4.conf.lxc1.rp_filter", Value: "0"}},
			want:     []string{"net.ipv4.conf.all.rp_filter = 0 does not lower net.ipv4.conf.eth0.rp_filter = 2: the kernel takes the larger"},
		},
		"both are lowered": {
			all: "1", lxc1: "1",
			settings: []sysctl.Setting{{Key: "net.ipv4.conf.all.rp_filter", Value: "0"}, {Key: "net.ipv4.conf.lxc1.rp_filter", Value: "0"}},
		},
		"one is raised": {settings: []sysctl.Setting{{Key: "net.ipv4.conf.lxc1.rp_filter", Value: "1"}}},
		"not concerned": {all: "1", settings: []sysctl.Setting{{Key: "net.ipv4.ip_forward", Value: "1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "eth0", "lxc1")
			for link, value := range map[string]string{"all": tc.all, "eth0": tc.eth0, "lxc1": tc.lxc1} {
				if value != "" {
					n.PutValue("net.ipv4.conf."+link+".rp_filter", value)
				}
			}
			d := n.dropIn()
			d.Settings = tc.settings
			require.Equal(t, tc.want, advise(t, sysctl.Settings{Values: tc.settings, Kernel: d.Kernel}))
			require.Equal(t, tc.want, advise(t, d))
			require.NoError(t, d.Apply(t.Context()))
			require.Empty(t, check(t, d), "it is not a change")
			require.Equal(t, tc.want, advise(t, d))
		})
	}
}

func TestSYS8_ADropInNeverCostsADefaultRoute(t *testing.T) {
	n := newNode(t, "eth0")
	n.LearnRouter("eth0")
	before := n.Values()
	m := &manager{node: n}
	d := n.dropInWith(m)
	d.Settings = sysctl.Forwarding()
	n.Fail = refuse(syscall.EPERM, "net.ipv6.conf.eth0.accept_ra")
	require.ErrorContains(t, d.Apply(t.Context()), "eth0")
	require.Zero(t, m.reloads)
	require.Equal(t, "0", n.Values()["net.ipv6.conf.all.forwarding"])

	n.Fail = nil
	require.NoError(t, d.Apply(t.Context()))
	require.Equal(t, 1, m.reloads)
	routers, err := n.Routers()
	require.NoError(t, err)
	require.Equal(t, []string{"eth0"}, routers)
	advice := advise(t, d)
	require.Len(t, advice, 1)
	require.Contains(t, advice[0], "net.ipv6.conf.eth0.accept_ra = 2 does not")
	require.NoError(t, d.Revert(t.Context()))
	require.Equal(t, before, n.Values())

	n.PutValue("net.ipv6.conf.eth0.accept_ra", "0")
	require.ErrorContains(t, d.Apply(t.Context()), "accept_ra is 0")
	require.NoFileExists(t, n.file())

	// another file's forwarding, which a reload would turn on
	n.put(t, "usr/50.conf", "net.ipv6.conf.all.forwarding = 1\n")
	d.Settings = sysctl.Cilium().Settings
	require.ErrorContains(t, d.Apply(t.Context()), "accept_ra is 0")
	require.Equal(t, 1, m.reloads)
}

func TestSYS9_RevertAfterARebootTakesBackWhatTheFileSet(t *testing.T) {
	n := newLastingNode(t, "lxc1")
	n.PutValue("net.ipv4.conf.all.rp_filter", "2")
	require.NoError(t, n.dropIn().Apply(t.Context()))
	n.Reboot() // and systemd applies the file
	require.Equal(t, "0", n.Values()["net.ipv4.conf.all.rp_filter"])
	require.NoError(t, n.dropIn().Revert(t.Context()))
	require.Equal(t, "2", n.Values()["net.ipv4.conf.all.rp_filter"])
	require.NoFileExists(t, n.file())
}

func TestSYS9_AnEditedFileStays(t *testing.T) {
	n := newNode(t)
	n.PutValue("net.ipv4.conf.all.rp_filter", "2")
	require.NoError(t, n.dropIn().Apply(t.Context()))
	n.put(t, "etc/"+ciliumFile, "# edited\n")
	changes, err := n.dropIn().CheckRevert(t.Context())
	require.Empty(t, changes)
	require.EqualError(t, err, n.file()+" is no longer as it was left, so it is kept")
	require.EqualError(t, n.dropIn().Revert(t.Context()), err.Error())
	require.Equal(t, "# edited\n", read(t, n.file()))
	require.Equal(t, "0", n.Values()["net.ipv4.conf.all.rp_filter"], "it needs its values")
	require.EqualError(t, n.dropIn().Revert(t.Context()), err.Error(), "each time")
	require.NoError(t, os.Remove(n.file()))
	require.NoError(t, n.dropIn().Revert(t.Context()))
	require.Equal(t, "2", n.Values()["net.ipv4.conf.all.rp_filter"])
	require.NoDirExists(t, n.state())
}

// A line of ours that another file cancels is reported, whether or not a link matches it.
func TestSYS5_ALineThatAnotherFileCancelsIsReported(t *testing.T) {
	pattern, explicit := sysctl.Setting{Key: "net.ipv4.conf.lxc*.rp_filter", Value: "0"}, sysctl.Setting{Key: "net.ipv4.conf.all.rp_filter", Value: "0"}
	exclusion := sysctl.Setting{Key: "net.ipv4.conf.lo.rp_filter", Exclude: true}
	for later, want := range map[string]string{
		"-net.ipv4.conf.lxc*.rp_filter\n":           ":1 excludes net.ipv4.conf.lxc*.rp_filter, which cancels that line of OURS at the next boot",
		"#\n-net/ipv4/conf/all/rp_filter\n":         ":2 excludes net.ipv4.conf.all.rp_filter, which cancels that line of OURS at the next boot",
		"net.ipv4.conf.lxc*.rp_filter = 1\n":        ":1 sets net.ipv4.conf.lxc*.rp_filter = 1, which overrides 0 at the next boot",
		"net.ipv4.conf.lo.rp_filter = 0\n":          ":1 sets net.ipv4.conf.lo.rp_filter, which cancels that it is excluded at the next boot",
		"-net.ipv4.conf.lxc?.rp_filter\n":           "",
		"-net.ipv4.conf.lxc*.rp_filter = 0 # why\n": "",
		"net.ipv4.conf.all.rp_filter = 0   # why\n": "",
		"net.ipv4.conf.all.rp_filter = 00\n":        "",
	} {
		for _, links := range [][]string{nil, {"lxc1", "lxc2"}} {
			n := newNode(t, links...)
			d := n.dropIn()
			d.Settings = []sysctl.Setting{pattern, explicit, exclusion}
			file := n.put(t, "etc/99-zzzz.conf", later)
			text := strings.Join(advise(t, d), "\n")
			if want == "" {
				require.Empty(t, text, later)
				continue
			}
			if strings.Contains(want, "lxc*.rp_filter = 1") && len(links) > 0 {
				want = strings.Replace(want, "net.ipv4.conf.lxc*.rp_filter", "net.ipv4.conf.lxc1.rp_filter, net.ipv4.conf.lxc2.rp_filter, net.ipv4.conf.lxc*.rp_filter", 1)
			}
			require.Equal(t, file+strings.Replace(want, "OURS", n.file(), 1), text, later)
		}
	}
}

// A file that sets the value by its other name overrides it too.
func TestSYS5_SYS2_AnotherNameOfTheValueOverridesIt(t *testing.T) {
	n := newNode(t)
	d := n.dropIn()
	d.Settings = []sysctl.Setting{{Key: "net.ipv4.ip_forward", Value: "1"}}
	file := n.put(t, "etc/99-zzzz.conf", "net.ipv4.conf.all.forwarding = 0\n")
	advice := strings.Join(advise(t, d), "\n")
	require.Contains(t, advice, file+":1 sets ")
	require.Contains(t, advice, " = 0, which overrides 1 at the next boot")
}

// Values that another file spells otherwise are the same.
func TestSYS5_AValueThatIsSpelledOtherwiseOverridesNothing(t *testing.T) {
	n := newNode(t)
	n.PutValue("net.ipv4.ip_local_reserved_ports", "")
	d := n.dropIn()
	for value, want := range map[string]int{"30000-32767,8472": 0, "8472,30000-30999,31000-32767": 0, "8472": 1, "": 1} {
		d.Settings = []sysctl.Setting{{Key: "net.ipv4.ip_local_reserved_ports", Value: "8472,30000-32767"}}
		n.put(t, "etc/99-zzzz.conf", "net.ipv4.ip_local_reserved_ports = "+value+"\n")
		advice := advise(t, d)
		require.Len(t, advice, want, "%s: %v", value, advice)
	}
}

// Files that other programs read after all of sysctl.d are reported where they set a key of
// ours otherwise.
func TestSYS5_AFileThatIsReadAfterAllOthersIsReported(t *testing.T) {
	n := newNode(t, "lxc1")
	for name, reader := range map[string]string{"/sysctl.conf": "sysctl --system", "ufw/sysctl.conf": "ufw"} {
		file := n.put(t, name, "# net.ipv4.conf.all.rp_filter=2\nnet/ipv4/conf/all/rp_filter=1\nnet/ipv4/ip_forward=1\nnet.ipv4.conf.lxc1.rp_filter = 0 # as ours\n")
		require.Equal(t, []string{file + ":2 sets net.ipv4.conf.all.rp_filter = 1, which overrides 0 when " + reader + " reads it, after all of sysctl.d"}, advise(t, n.dropIn()))
		require.NoError(t, os.Remove(file))
	}
	require.Empty(t, advise(t, n.dropIn()))
}
