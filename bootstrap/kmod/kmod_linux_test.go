// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kmod_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/kmod"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/hosttool"
	"github.com/slipway-dev/slipway/internal/testns"
)

var (
	_ bootstrap.Hosted  = kmod.Modules{}
	_ bootstrap.Action  = kmod.Modules{}
	_ bootstrap.Adviser = kmod.Modules{}
)

const loadVariable = "KMOD_TEST_LOAD"

// TestMain loads a module if a test has started this program for that.
func TestMain(m *testing.M) {
	if name := os.Getenv(loadVariable); name != "" {
		fmt.Println(kmod.Modules{List: []string{name}, Load: true}.Apply(context.Background()))
		return
	}
	os.Exit(m.Run())
}

// node writes files of a node.
func node(t *testing.T, tree string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, strings.Replace(name, "TREE", tree+"/"+kmod.Release(), 1))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

// asDistributionsHaveThem returns lists in the forms that Debian, Fedora and Arch use.
func asDistributionsHaveThem() map[string]string {
	return map[string]string{
		"TREE/modules.builtin": "kernel/net/ipv4/tunnel4.ko\nkernel/drivers/net/vxlan/vxlan.ko\n",
		"TREE/modules.dep": "kernel/net/netfilter/xt_socket.ko.xz: kernel/net/ipv4/netfilter/nf_socket_ipv4.ko.xz\n" +
			"kernel/net/ipv4/netfilter/nf_socket_ipv4.ko.xz:\nkernel/net/netfilter/ipset/ip_set.ko.zst:\nextra/my-own.ko: kernel/other.ko\n",
		"sys/module/loop/parameters/max_loop":   "8\n", // built in, with a parameter
		"sys/module/br_netfilter/initstate":     "live\n",
		"sys/module/xt_mark/initstate":          "coming\n",
		"proc/sys/kernel/modules_disabled":      "0\n",
		"proc/sys/net/ipv4/this_is_no_module_1": "",
	}
}

// needModprobe skips the test if there is no modprobe that could load a module.
func needModprobe(t *testing.T) {
	t.Helper()
	if _, err := hosttool.Find("modprobe"); err != nil {
		testns.Skip(t, "modprobe is not installed")
	}
}

func TestHP2_WhatTheKernelHas(t *testing.T) {
	needModprobe(t)
	for _, tree := range []string{"lib/modules", "usr/lib/modules", "run/booted-system/kernel-modules/lib/modules"} {
		t.Run(tree, func(t *testing.T) {
			dir := node(t, tree, asDistributionsHaveThem())
			m := kmod.Modules{List: []string{"tunnel4", "vxlan", "loop", "br_netfilter", "br-netfilter", "xt_socket", "ip-set", "my_own", "xt-socket"}}.Below(dir)
			changes, err := m.Check(t.Context())
			require.NoError(t, err)
			require.Empty(t, changes, "the modules are loaded")
			require.NoError(t, m.Apply(t.Context()))
			advice, err := m.Advise(t.Context())
			require.NoError(t, err)
			require.Len(t, advice, 3)
			require.Contains(t, advice[0], "kernel module xt_socket is not loaded: ")
			require.Contains(t, advice[0], "modprobe xt_socket loads it now")
			require.Contains(t, advice[2], "kernel module my_own is not loaded")

			m.Load = true
			changes, err = m.Check(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"load kernel module xt_socket", "load kernel module ip_set", "load kernel module my_own"}, changes)
			advice, err = m.Advise(t.Context())
			require.NoError(t, err)
			require.Empty(t, advice)

			// A module that is being loaded or unloaded counts as missing, and is loaded.
			more := asDistributionsHaveThem()["TREE/modules.dep"] + "kernel/net/netfilter/xt_mark.ko:\n"
			require.NoError(t, os.WriteFile(filepath.Join(dir, tree, kmod.Release(), "modules.dep"), []byte(more), 0o644))
			changes, err = kmod.Modules{List: []string{"xt_mark"}, Load: true}.Below(dir).Check(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"load kernel module xt_mark"}, changes)
		})
	}
}

func TestHP2_WhatIsMissingIsNamedWithTheRemedy(t *testing.T) {
	dir := node(t, "lib/modules", asDistributionsHaveThem())
	at := func(name string) string { return filepath.Join(dir, "lib/modules", kmod.Release(), name) }
	for _, load := range []bool{false, true} {
		m := kmod.Modules{List: []string{"xt_none", "tunnel4", "xt_nada"}, Load: load}.Below(dir)
		_, err := m.Check(t.Context())
		require.Equal(t, "module.missing", code.Of(err))
		require.ErrorContains(t, err, "kernel module xt_none: the kernel does not have this module ("+kmod.Release()+"): install the package")
		require.ErrorContains(t, err, "kernel module xt_nada: ")
		require.Equal(t, "module.missing", code.Of(m.Apply(t.Context())))
	}
	m := kmod.Modules{List: []string{"ip_set"}}.Below(dir)
	disabled := filepath.Join(dir, "proc/sys/kernel/modules_disabled")
	for _, m.Load = range []bool{false, true} {
		require.NoError(t, os.WriteFile(disabled, []byte("1\n"), 0o644))
		_, err := m.Check(t.Context())
		require.ErrorContains(t, err, "kernel module ip_set is not loaded, and cannot be until the next boot, since kernel.modules_disabled is set")
		require.Equal(t, "module.not-loadable", code.Of(err))
		require.NoError(t, os.Remove(disabled))
		require.ErrorContains(t, m.Apply(t.Context()), "kernel module ip_set is not built in, and this kernel does not support loading modules, whatever is in /lib/modules/")
	}

	require.NoError(t, os.Remove(at("modules.dep")))
	require.NoError(t, unix.Mkfifo(at("modules.dep"), 0o644))
	_, err := m.Check(t.Context())
	require.ErrorContains(t, err, at("modules.dep")+" is a FIFO, not a regular file")

	// A tree without lists, such as one for building modules, is not enough.
	require.NoError(t, os.Remove(at("modules.dep")))
	require.NoError(t, os.Remove(at("modules.builtin")))
	require.NoError(t, os.Mkdir(at("build"), 0o755))
	for range 2 {
		_, err = m.Check(t.Context())
		require.ErrorContains(t, err, "kernel module ip_set: it is not loaded, and cannot tell whether the kernel has it, since its lists of modules are not in /lib/modules/"+kmod.Release())
		require.Equal(t, "module.undetermined", code.Of(err))
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "lib")))
	}
	require.NoError(t, os.MkdirAll(at(""), 0o755))
	other := filepath.Join(dir, "usr/lib/modules", kmod.Release())
	require.NoError(t, os.MkdirAll(other, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(other, "modules.builtin"), []byte("kernel/net/netfilter/ipset/ip_set.ko\n"), 0o644))
	_, err = m.Check(t.Context())
	require.NoError(t, err)

	for _, name := range []string{"", "--remove", "../x", "a b", "net/xt", "a\nb"} {
		_, err := kmod.Modules{List: []string{name}}.Check(t.Context())
		require.ErrorContains(t, err, "is not a kernel module name", "%q", name)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = m.Check(ended)
	require.ErrorIs(t, err, context.Canceled)
}

// spare is a module of this kernel that is not loaded.
func spare(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nlmon", "ifb", "macsec"} {
		if err := (kmod.Modules{List: []string{name}}).Apply(t.Context()); err != nil {
			continue
		}
		changes, err := kmod.Modules{List: []string{name}, Load: true}.Check(t.Context())
		require.NoError(t, err)
		if len(changes) > 0 {
			t.Cleanup(func() { require.NoError(t, unix.DeleteModule(name, 0)) })
			return name
		}
	}
	testns.SkipKernel(t, "module that can be loaded and is not")
	return ""
}

func TestHP2_LoadedByTheNodesModprobe(t *testing.T) {
	testns.OwnKernel(t)
	name := spare(t)
	has := func() bool {
		modules, err := os.ReadFile("/proc/modules")
		require.NoError(t, err)
		return bytes.Contains(append([]byte("\n"), modules...), []byte("\n"+name+" "))
	}
	require.False(t, has())
	bootstraptest.Conform(t, func() bootstrap.Action { return kmod.Modules{List: []string{name, "tun"}, Load: true} }, nil)
	require.True(t, has())
}

// A container has other modules, or none: the host's modules are loaded, in its namespace.
func TestHP2_LoadedByTheHostsModprobe(t *testing.T) {
	testns.OwnKernel(t)
	testns.Enter(t, testns.Mount)
	m := kmod.Modules{List: []string{spare(t)}, Load: true}
	require.NoError(t, unix.Mount("none", "/lib/modules", "tmpfs", 0, ""))
	require.ErrorContains(t, m.Apply(t.Context()), "in a container, enter the host's mount namespace")
	plan := bootstrap.Plan{
		Host:  hostns.Host{Proc: "/proc", LockFile: filepath.Join(t.TempDir(), "lock")},
		Steps: []bootstrap.Step{{Name: "modules", Action: m}},
	}
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)
	changes, err := m.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, changes)
	report, err := plan.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Skipped, report.Results[0].Status, "a module stays")
}

func TestHP2_WithoutTheCapability(t *testing.T) {
	testns.OwnKernel(t)
	m := kmod.Modules{List: []string{spare(t)}, Load: true}

	// A user namespace has all capabilities, but CAP_SYS_MODULE there does not reach the
	// kernel.
	inside := exec.Command("unshare", "-Urm", os.Args[0])
	inside.Env = append(os.Environ(), loadVariable+"="+m.List[0])
	out, err := inside.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "load kernel module "+m.List[0]+": ")
	require.Contains(t, string(out), "which is in effect here: refused by a seccomp or security module's profile, or owned by another user namespace")

	said := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread has lost a capability
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		err := errors.Join(unix.Capget(&header, &data[0]), unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_MODULE, 0, 0, 0))
		data[0].Effective &^= 1 << unix.CAP_SYS_MODULE
		data[0].Permitted &^= 1 << unix.CAP_SYS_MODULE
		if err = errors.Join(err, unix.Capset(&header, &data[0])); err == nil {
			err = m.Apply(t.Context())
		}
		said <- err
	}()
	err = <-said
	require.ErrorContains(t, err, "load kernel module "+m.List[0]+": ")
	require.ErrorContains(t, err, "Operation not permitted (needs CAP_SYS_MODULE in the initial user namespace)")
	require.NoError(t, m.Apply(t.Context())) // loaded again, for the cleanup to unload
}
