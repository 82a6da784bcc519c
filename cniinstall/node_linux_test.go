// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testns"
)

// A read-only directory whose baked-in plugins are equal is no error; a differing one is, with the
// remedy, and nothing is touched.
func TestCNI1_ReadOnlyBinDir(t *testing.T) {
	testns.Enter(t, testns.Mount)
	for _, mode := range []os.FileMode{0o755, 0o555} {
		n := newNode(t)
		write(t, n.plugin("cilium-cni"), script("0.3.1", "0.4.0", "1.0.0"), mode)
		write(t, n.plugin("loopback"), "any loopback", 0o755)
		mountReadOnly(t, n.bin)
		i := n.install()
		requireApplied(t, i, n.root)
		require.NoError(t, i.Revert(t.Context()))

		n.source("cilium-cni", script("1.0.0"))
		before := tree(t, n.root)
		err := i.Apply(t.Context())
		require.ErrorIs(t, err, unix.EROFS)
		require.ErrorContains(t, err, "needs a file system mounted read-write")
		require.ErrorContains(t, err, n.plugin("cilium-cni"))
		require.Equal(t, before, tree(t, n.root))
	}
}

// The directory of configurations is part of a read-only image, as on NixOS: Check says so, and no
// plugin is installed in vain.
func TestCNI2_ReadOnlyConfDir(t *testing.T) {
	testns.Enter(t, testns.Mount)
	n := newNode(t)
	image := filepath.Join(n.root, "image")
	require.NoError(t, os.Mkdir(image, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Dir(n.conf), 0o755))
	require.NoError(t, os.Symlink(image, n.conf))
	mountReadOnly(t, image)
	i := n.install()
	before := tree(t, n.root)
	_, err := i.Check(t.Context())
	require.ErrorIs(t, err, unix.EROFS)
	require.ErrorContains(t, err, image+" is not writable: read-only file system (needs a file system mounted read-write)")
	require.Equal(t, "cni.directory-unusable", code.Of(err))
	require.ErrorIs(t, i.Apply(t.Context()), unix.EROFS)
	require.Equal(t, before, tree(t, n.root))
}

// A directory mounted noexec: the error says so before anything is touched.
func TestCNI2_NoExec(t *testing.T) {
	testns.Enter(t, testns.Mount)
	n := newNode(t)
	require.NoError(t, os.MkdirAll(n.bin, 0o755))
	require.NoError(t, unix.Mount("tmpfs", n.bin, "tmpfs", unix.MS_NOEXEC, "mode=0755"))
	t.Cleanup(func() { unix.Unmount(n.bin, unix.MNT_DETACH) })
	before := tree(t, n.root)
	err := n.install().Apply(t.Context())
	require.ErrorContains(t, err, n.bin+" is on a file system mounted noexec")
	require.Equal(t, "cni.directory-unusable", bootstrap.Code(err))
	require.Equal(t, before, tree(t, n.root))
}

func TestCNI1_OwnerPutRight(t *testing.T) {
	testns.Root(t)
	n, i := installed(t)
	for _, path := range []string{n.plugin("cilium-cni"), n.confFile()} {
		require.NoError(t, os.Chown(path, 1234, 5678))
	}
	changes, err := i.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"set mode 0755 and owner 0:0 of file " + n.plugin("cilium-cni") + "",
		"set mode 0600 and owner 0:0 of file " + n.confFile() + "",
	}, changes)
	requireApplied(t, i, n.root)
	for _, path := range []string{n.plugin("cilium-cni"), n.confFile()} {
		var st unix.Stat_t
		require.NoError(t, unix.Stat(path, &st))
		require.Zero(t, st.Uid+st.Gid)
	}
}

// A setgid directory passes its group on to new files.
func TestCNI1_SetgidDirectory(t *testing.T) {
	testns.Root(t)
	n := newNode(t)
	require.NoError(t, os.MkdirAll(n.bin, 0o755))
	require.NoError(t, os.Chown(n.bin, 0, 4242))
	require.NoError(t, os.Chmod(n.bin, os.ModeSetgid|0o755))
	i := n.install()
	requireApplied(t, i, n.root)
}

// Plugins in a directory that others can write to are installed but not run, neither those already
// there nor those just written, because others could replace them first.
func TestSEC11_PluginsOfOthersAreNotRun(t *testing.T) {
	testns.Root(t)
	for name, spoil := range map[string]func(n node) error{
		"directory":            func(n node) error { return os.Chown(n.bin, 1000, 1000) },
		"everybody's":          func(n node) error { return os.Chmod(n.bin, 0o777) },
		"directory on the way": func(n node) error { return os.Chown(n.root+"/opt", 1000, 1000) },
		"plugin":               func(n node) error { return os.Chown(n.plugin("portmap"), 1000, 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			ran := filepath.Join(t.TempDir(), "ran")
			theirs := strings.Replace(script("0.3.1", "1.0.0"), "\n", "\necho as $(id -u) >"+ran+"\n", 1)
			write(t, n.plugin("portmap"), theirs, 0o755)
			n.source("cilium-cni", script("0.3.1", "1.0.0"))
			require.NoError(t, spoil(n))
			i := n.install()
			i.Config = cniinstall.Whole(list(agentPlugin + `,{"type":"portmap"}`))
			require.NoError(t, errors.Join(second(i.Check(t.Context())), i.Apply(t.Context())))
			require.NoFileExists(t, ran)
			require.FileExists(t, n.confFile())
			require.FileExists(t, n.plugin("cilium-cni"))
			require.Contains(t, strings.Join(n.advice(i), "\n"), "cannot tell whether CNI plugin portmap speaks cniVersion 0.3.1, since it is not run: open "+n.plugin("portmap"))

			raw, err := os.ReadFile(n.confFile())
			require.NoError(t, err)
			err = cniinstall.Validate(t.Context(), raw, n.bin)
			require.ErrorContains(t, err, "run CNI plugin portmap for its version: open "+n.plugin("portmap"))
			require.ErrorContains(t, err, "others than root may change it")
			require.NoFileExists(t, ran)
			require.NoError(t, i.Revert(t.Context()))
			require.NoFileExists(t, n.plugin("cilium-cni"))
		})
	}
}

// Directories may belong to other users, as kubespray's directory of plugins does: the install works,
// with advice.
func TestSEC2_DirectoriesOfOthersAreNamed(t *testing.T) {
	testns.Root(t)
	n, i := installed(t)
	require.Empty(t, n.advice(i))
	require.NoError(t, os.Chown(n.bin, 1000, 0))
	require.NoError(t, os.Chmod(n.conf, 0o777))
	require.Equal(t, []string{
		"users other than root may change the CNI directory " + n.bin + ", whose content runs as root: it belongs to uid 1000",
		"users other than root may change the CNI directory " + n.conf + ", whose content runs as root: it has mode 0777",
		"cannot tell whether CNI plugin cilium-cni speaks cniVersion 1.0.0, since it is not run: open " + n.plugin("cilium-cni") +
			`: "bin": others than root may change it: it belongs to uid 1000`,
	}, n.advice(i))
	require.NoError(t, os.Remove(n.plugin("cilium-cni")))
	require.NoError(t, i.Apply(t.Context()))
	require.FileExists(t, n.plugin("cilium-cni"))

	require.NoError(t, os.Chown(n.bin, 0, 1000))
	require.NoError(t, os.Chmod(n.conf, 0o775))
	require.Empty(t, n.advice(i), "root's group is root's")
	require.NoError(t, os.Chmod(n.bin, 0o775))
	require.Equal(t, []string{
		"users other than root may change the CNI directory " + n.bin + ", whose content runs as root: it has mode 0775 and group 1000",
	}, n.advice(i)[:1])
	i.Plugins, i.Config = nil, nil
	require.Empty(t, n.advice(i), "nothing is written there")
}

// A watcher of the directories, such as containerd, sees every file renamed within its own directory,
// plugins before the configuration; a revert removes the configuration first.
func TestCNI2_OrderThatAWatcherSees(t *testing.T) {
	n := newNode(t)
	for _, dir := range []string{n.bin, n.conf} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	w := watch(t, n.bin, n.conf)
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	require.Equal(t, []string{
		"moved cilium-cni", "moved loopback", "moved 05-cilium.conflist",
	}, w.events())
	require.NoError(t, i.Apply(t.Context()))
	require.Empty(t, w.events())
	n.source("another", script("1.0.0")) // recorded after the configuration
	require.NoError(t, i.Apply(t.Context()))
	require.Equal(t, []string{"moved another"}, w.events())
	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, []string{
		"deleted another", "deleted 05-cilium.conflist", "deleted loopback", "deleted cilium-cni",
	}, w.events(), "no configuration names another")
}

type watcher struct {
	t  *testing.T
	fd int
}

func watch(t *testing.T, dirs ...string) watcher {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	for _, dir := range dirs {
		_, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_FROM|unix.IN_MOVED_TO|unix.IN_DELETE)
		require.NoError(t, err)
	}
	return watcher{t, fd}
}

// events lists the final names that were renamed into place or deleted since, without temporary
// names.
func (w watcher) events() (seen []string) {
	for _, r := range w.renames() {
		if r[1] != "" {
			seen = append(seen, "moved "+r[1])
		} else {
			seen = append(seen, "deleted "+r[0])
		}
	}
	return seen
}

// renames lists, in the order a watcher sees them, each rename as {from, to} and each removal
// with an empty to; each rename must come from the same directory.
func (w watcher) renames() (seen [][2]string) {
	from := map[uint32]inotifyEvent{} // by cookie
	for _, e := range w.read() {
		switch {
		case e.mask&unix.IN_MOVED_FROM != 0:
			from[e.cookie] = e
		case e.mask&unix.IN_MOVED_TO != 0:
			require.Equal(w.t, e.watch, from[e.cookie].watch, "%s came from another directory", e.name)
			seen = append(seen, [2]string{from[e.cookie].name, e.name})
		case e.mask&unix.IN_DELETE != 0:
			seen = append(seen, [2]string{e.name, ""})
		}
	}
	return seen
}

type inotifyEvent struct {
	watch, mask, cookie uint32
	name                string
}

// read returns what has happened since.
func (w watcher) read() (events []inotifyEvent) {
	buf := make([]byte, 64<<10)
	n, err := unix.Read(w.fd, buf)
	if err == unix.EAGAIN {
		return nil
	}
	require.NoError(w.t, err)
	for b := buf[:n]; len(b) > 0; {
		size := binary.NativeEndian.Uint32(b[12:])
		events = append(events, inotifyEvent{binary.NativeEndian.Uint32(b), binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[8:]),
			strings.TrimRight(string(b[16:16+size]), "\x00")})
		b = b[16+size:]
	}
	return events
}

// onHost calls f in the process's mount namespace instead of the thread's, as a plan calls an
// action in the host's.
func onHost(t *testing.T, f func(context.Context) error) error {
	t.Helper()
	return hostns.Do(t.Context(), "/proc/self", []string{"mnt"}, f)
}

// Run in its own mount namespace, like a container: the plugins exist only there, the directories
// only on the host. So is what a loop keeps.
func TestCNI2_CNI7_FromAContainerOntoTheHost(t *testing.T) {
	testns.Enter(t, testns.Mount)
	n := newNode(t)
	hidden := filepath.Join(n.root, "hidden")
	require.NoError(t, os.Mkdir(hidden, 0o755))
	require.NoError(t, unix.Mount("tmpfs", hidden, "tmpfs", 0, ""))
	t.Cleanup(func() { unix.Unmount(hidden, unix.MNT_DETACH) })
	plugin := saying("readlink /proc/self/ns/mnt >" + n.root + "/ran-in")
	write(t, filepath.Join(hidden, "cilium-cni"), plugin, 0o644)
	root, err := os.OpenRoot(hidden)
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })

	i := n.install()
	i.Plugins, i.Optional = root.FS(), []string{"loopback"}
	require.NoError(t, onHost(t, i.Apply))
	require.NoError(t, onHost(t, func(ctx context.Context) error {
		changes, err := i.Check(ctx)
		require.Empty(t, changes)
		return err
	}))
	err = onHost(t, func(context.Context) error {
		_, err := os.Stat(filepath.Join(hidden, "cilium-cni"))
		return err
	})
	require.ErrorIs(t, err, os.ErrNotExist, "the host does not see the source")
	hosts, err := os.Readlink("/proc/self/ns/mnt")
	require.NoError(t, err)
	require.Equal(t, hosts, strings.TrimSpace(read(t, n.root+"/ran-in")), "plugins run in the host's namespace")

	require.NoError(t, unix.Mount("tmpfs", n.conf, "tmpfs", 0, "")) // not on the host
	t.Cleanup(func() { unix.Unmount(n.conf, unix.MNT_DETACH) })
	require.NoError(t, os.Symlink("/proc/self", n.root+"/1"))
	plan := n.planOf(cniinstall.Uninstall{}, stepOf(i.Install))
	plan.Host.Proc, plan.Host.Here = n.root, false
	ctx, cancel := context.WithCancel(t.Context())
	damages := []func() error{ // one at a time, since the first may still be repaired
		func() error { return os.Remove(n.confFile()) },
		func() error { // still being written, however long the repair takes
			later := time.Now().Add(time.Hour)
			return errors.Join(os.WriteFile(n.plugin("cilium-cni"), []byte("x"), 0o755), os.Chtimes(n.plugin("cilium-cni"), later, later))
		},
		func() error { cancel(); return nil },
	}
	loop := reconcile.Loop{Plan: plan, Done: func(_ *bootstrap.Report, err error) {
		require.NoError(t, err)
		require.NoError(t, onHost(t, func(context.Context) error {
			requireContent(t, n.plugin("cilium-cni"), plugin, 0o755)
			requireContent(t, n.confFile(), agentConf, 0o600)
			damage := damages[0]
			damages = damages[1:]
			return damage()
		}))
	}}
	require.NoError(t, loop.Run(ctx))
	require.Empty(t, damages)
	require.NoFileExists(t, n.confFile(), "in the container's namespace there is another directory")
	require.NoError(t, onHost(t, i.Revert))
	require.NoDirExists(t, n.bin)
}
