// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/sysctl"
)

func TestSYS3_RealKernelDropInAppliesToExistingLinks(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	veth(t, "lxc1234567890", "lxc2.7")
	veth(t, "cilium_net", "cilium_host")
	veth(t, "eth0", "eth1")
	require.NoError(t, sysctl.Kernel{}.Set(
		sysctl.Setting{Key: "net.ipv4.conf.*.rp_filter", Value: "2"},
		sysctl.Setting{Key: "net.ipv4.conf.eth1.rp_filter", Value: "1"}))
	before := values(t)
	root := t.TempDir()
	d := cilium(recordedFile{sysctl.DropIn{Dir: filepath.Join(root, "sysctl.d")}, real(t, filepath.Join(root, "state"))})
	require.NoError(t, d.Apply(t.Context()))

	want := map[string]string{}
	for _, name := range []string{"all", "lxc1234567890", "lxc2.7", "cilium_net", "cilium_host"} {
		want["net/ipv4/conf/"+name+"/rp_filter"] = "0"
	}
	require.Equal(t, want, differing(before, values(t)))
	require.Equal(t, []string{
		"-net.ipv4.conf.lxc*.rp_filter = 0", "-net.ipv4.conf.cilium_*.rp_filter = 0", "net.ipv4.conf.all.rp_filter = 0",
	}, settingLines(read(t, filepath.Join(d.Dir, ciliumFile))))
	info, err := os.Stat(filepath.Join(d.Dir, ciliumFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode())
	advice := advise(t, d)
	require.Equal(t, []string{"net.ipv4.conf.all.rp_filter = 0 does not lower net.ipv4.conf.eth0.rp_filter = 2, " +
		"net.ipv4.conf.eth1.rp_filter = 1, net.ipv4.conf.lo.rp_filter = 2: the kernel takes the larger"}, advice)
	require.Empty(t, check(t, d))

	require.NoError(t, d.Revert(t.Context()))
	require.Empty(t, differing(before, values(t)))
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A directory may belong to another user: it works, with advice.
func TestSEC2_ADirectoryOfOthersIsNamed(t *testing.T) {
	testns.Root(t)
	n := newNode(t, "eth0")
	d := n.dropIn()
	said := func() string {
		advice := advise(t, d)
		return strings.Join(advice, "\n")
	}
	require.NotContains(t, said(), "other than root")
	require.NoError(t, os.Chown(n.dir(), 1000, 0))
	require.Contains(t, said(), "users other than root may change the files in "+n.dir()+", which are applied as root: it belongs to uid 1000")
	require.NoError(t, d.Apply(t.Context()))
	require.NoError(t, os.Chown(n.dir(), 0, 0))
	require.NoError(t, os.Chmod(n.dir(), 0o777|os.ModeSticky))
	require.Contains(t, said(), "which are applied as root: it has mode 1777")
}

// The zero values are the host's: here with empty directories over its own, and no
// listener on systemd's sockets.
func TestSYS4_TheZeroValuesAreTheHostsAndFallBackWithoutSystemd(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	for _, dir := range []string{"/etc", "/etc/sysctl.d", "/usr/lib/sysctl.d", "/run"} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	}
	require.NoError(t, sysctl.Kernel{}.Set(sysctl.Setting{Key: "net.ipv4.conf.all.rp_filter", Value: "2"}))
	higher := "/usr/lib/sysctl.d/99-zzzz.conf"
	require.NoError(t, os.WriteFile(higher, []byte("net.ipv4.conf.all.rp_filter = 1\n"), 0o644))
	d := cilium(recordedFile{sysctl.DropIn{Reload: "systemd-sysctl.service"}, real(t, "/run/state")})
	require.Equal(t, []string{"set net.ipv4.conf.all.rp_filter = 0 (is 2)", "write file /etc/sysctl.d/99-zzz-override_cilium.conf"}, check(t, d))
	require.Contains(t, strings.Join(advise(t, d), "\n"), "values are set directly, without a reload: no systemd")
	require.NoError(t, d.Apply(t.Context()))
	require.Empty(t, check(t, d))
	require.Equal(t, higher+":1 sets net.ipv4.conf.all.rp_filter = 1, which overrides 0 at the next boot", advise(t, d)[0])

	require.NoError(t, unix.Mount("", "/etc/sysctl.d", "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	require.ErrorIs(t, d.Revert(t.Context()), unix.EROFS)
	require.NoError(t, unix.Mount("", "/etc/sysctl.d", "", unix.MS_REMOUNT, ""))
	require.NoError(t, d.Revert(t.Context()), "changes that could not be undone were kept")
	require.NoFileExists(t, "/etc/sysctl.d/99-zzz-override_cilium.conf")
}

func TestSYS9_AFileInMemoryBringsNothingBack(t *testing.T) {
	testns.Enter(t, testns.Mount)
	n := newNode(t)
	require.NoError(t, unix.Mount("tmpfs", n.dir(), "tmpfs", 0, ""))
	n.PutValue("net.ipv4.conf.all.rp_filter", "2")
	require.NoError(t, n.dropIn().Apply(t.Context()))
	require.FileExists(t, n.file())
	require.NoError(t, unix.Unmount(n.dir(), 0))
	n.Reboot()
	require.Empty(t, checkRevert(t, n.dropIn()))
	require.NoError(t, n.dropIn().Revert(t.Context()))
	require.Equal(t, "0", n.Values()["net.ipv4.conf.all.rp_filter"])
	require.NoDirExists(t, n.state())
}

// As on distributions whose /etc is part of a read-only image.
func TestSYS3_AReadOnlyDirectoryIsSaidBeforehand(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	root := testns.TempDir(t)
	require.NoError(t, unix.Mount("tmpfs", root, "tmpfs", 0, ""))
	for _, dir := range []string{"etc/sysctl.d", "state"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	etc := filepath.Join(root, "etc")
	require.NoError(t, unix.Mount(etc, etc, "", unix.MS_BIND, ""))
	require.NoError(t, sysctl.Kernel{}.Set(sysctl.Setting{Key: bad, Value: "2"}))
	right := cilium(recordedFile{DropIn: sysctl.DropIn{Dir: filepath.Join(etc, "sysctl.d"), Name: "right.conf"}})
	require.NoError(t, right.Apply(t.Context()))
	require.NoError(t, sysctl.Kernel{}.Set(sysctl.Setting{Key: bad, Value: "2"}))
	require.NoError(t, unix.Mount("", etc, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))

	for _, dir := range []string{"sysctl.d", "none/sysctl.d"} {
		d := cilium(recordedFile{sysctl.DropIn{Dir: filepath.Join(etc, dir)}, real(t, filepath.Join(root, "state", filepath.Base(filepath.Dir(dir))))})
		changes, err := d.Check(t.Context())
		require.ErrorIs(t, err, sysctl.ErrReadOnlyDirectory)
		require.Equal(t, "sysctl.directory-read-only", code.Of(err))
		require.ErrorIs(t, err, unix.EROFS)
		require.ErrorContains(t, err, filepath.Join(d.Dir, ciliumFile)+": its directory is read-only: "+etc)
		require.Equal(t, 1, strings.Count(err.Error(), "read-only file system"), "it is said once")
		require.Contains(t, changes, "set "+bad+" = 0 (is 2)")
		require.ErrorIs(t, d.Apply(t.Context()), sysctl.ErrReadOnlyDirectory)
		require.Equal(t, "0", values(t)["net/ipv4/conf/all/rp_filter"], "the values are independent of the file")
		require.NoError(t, d.Revert(t.Context()))
		require.Equal(t, "2", values(t)["net/ipv4/conf/all/rp_filter"])
	}
	require.Equal(t, []string{"set " + bad + " = 0 (is 2)"}, check(t, right), "the file needs no write")
}

// outside is a manager whose own /proc/sys is writable.
type outside struct{ proc, dir string }

func (outside) Reloading(context.Context) (string, error) { return "restart it", nil }

func (o outside) Reload(context.Context) error {
	all, err := sysctl.Effective(o.dir)
	for _, a := range all {
		err = errors.Join(err, sysctl.KernelAt(o.proc+"/sys").Set(a.Setting))
	}
	return err
}

func TestSYS4_AReadOnlyRealKernelIsLeftToTheReloader(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	root := testns.TempDir(t)
	o := outside{filepath.Join(root, "proc"), filepath.Join(root, "sysctl.d")}
	require.NoError(t, os.Mkdir(o.proc, 0o755))
	require.NoError(t, unix.Mount("proc", o.proc, "proc", 0, ""))
	require.NoError(t, sysctl.Kernel{}.Set(sysctl.Setting{Key: bad, Value: "2"}))
	before := values(t)
	require.NoError(t, unix.Mount("", "/proc/sys/net", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))

	d := recordedFile{sysctl.DropIn{Dir: o.dir, Name: "90-x.conf", Settings: []sysctl.Setting{
		{Key: bad, Value: "0"},
		{Key: "net.ipv4.ip_forward", Value: "1", IgnoreFailure: true},
		{Key: "kernel.random.boot_id", Value: "0", IgnoreFailure: true}, // no reload sets it
	}}.Reloads(sysctl.Instead(o)), real(t, filepath.Join(root, "state"))}
	require.Contains(t, check(t, d), "set "+bad+" = 0 (is 2)")
	direct := d
	direct.Reload = ""
	require.ErrorIs(t, direct.Apply(t.Context()), unix.EROFS)
	require.NoFileExists(t, filepath.Join(o.dir, "90-x.conf"), "there is no other process")
	require.NoError(t, d.Apply(t.Context()))
	require.Equal(t, "0", values(t)["net/ipv4/conf/all/rp_filter"])
	require.Equal(t, "1", values(t)["net/ipv4/ip_forward"])
	require.Empty(t, check(t, d))

	require.ErrorIs(t, d.Revert(t.Context()), unix.EROFS, "undoing reloads nothing")
	d.Book = openedFor(t, filepath.Join(root, "state"), "agent", "", sysctl.DropIn{Kernel: sysctl.KernelAt(o.proc + "/sys")})
	require.NoError(t, d.Revert(t.Context()))
	require.Empty(t, differing(before, values(t)))
}
