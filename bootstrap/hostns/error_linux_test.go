// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testns"
)

// fakeProcess makes a directory like /proc/1 that has only the given files in
// its ns directory: this process's own.
func fakeProcess(t *testing.T, files ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "1")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "ns"), 0o700))
	for _, f := range files {
		require.NoError(t, os.Symlink(filepath.Join("/proc", strconv.Itoa(os.Getpid()), "ns", f), filepath.Join(dir, "ns", f)))
	}
	return dir
}

func TestNS2_WrongDirectoryIsNamed(t *testing.T) {
	empty := t.TempDir()
	noCgroup := fakeProcess(t, "mnt", "net")
	regular := fakeProcess(t)
	require.NoError(t, os.WriteFile(filepath.Join(regular, "ns", "mnt"), nil, 0o600))
	fifo := fakeProcess(t)
	require.NoError(t, unix.Mkfifo(filepath.Join(fifo, "ns", "mnt"), 0o600))
	for _, c := range []struct {
		name, procDir string
		ns            []string
		want          string
	}{
		{"missing", empty + "/1", []string{"mnt"}, "enter " + empty + "/1: open: no such file or directory: is the host's /proc mounted there?"},
		{"not proc", empty, []string{"mnt"}, "enter " + empty + ": open: not in a proc file system: no ns inside: "},
		{"proc itself", "/proc", []string{"mnt"}, "enter /proc: open: not the directory of a running process in a proc file system (as /hostproc/1 is): "},
		{"no such process", "/proc/4194305", []string{"mnt"}, "enter /proc/4194305: open: no such process: "},
		{"a file", "/proc/version", []string{"mnt"}, "enter /proc/version: open: not a directory"},
		{"no cgroup namespaces", noCgroup, []string{"mnt", "cgroup", "net"},
			"enter cgroup namespace " + noCgroup + "/ns/cgroup: open: the kernel has no cgroup namespaces: "},
		{"not a namespace", regular, []string{"mnt"}, "enter mnt namespace " + regular + "/ns/mnt: open: not a namespace file"},
		{"a fifo", fifo, []string{"mnt"}, "enter mnt namespace " + fifo + "/ns/mnt: open: not a namespace file"},
		{"nothing there", fakeProcess(t), []string{"mnt"}, "/1/ns/mnt: open: no such file or directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := descriptors(t)
			err := hostns.Do(t.Context(), c.procDir, c.ns, mustNotRun(t))
			require.ErrorContains(t, err, c.want)
			require.Equal(t, errors.Is(err, fs.ErrNotExist), code.Of(err) == "host.no-process", "%s", code.Of(err))
			require.NotErrorIs(t, err, fs.ErrPermission)
			require.Equal(t, before, descriptors(t))
		})
	}
}

// A zombie process still has a directory in /proc with its namespace links.
func TestNS2_EndedProcess(t *testing.T) {
	cmd := exec.Command("true")
	require.NoError(t, cmd.Start())
	dir := filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid))
	var info unix.Siginfo
	require.NoError(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil))
	err := hostns.Do(t.Context(), dir, []string{"mnt"}, mustNotRun(t))
	require.ErrorContains(t, err, "enter mnt namespace "+dir+"/ns/mnt: open: the process has ended: ")
	require.NoError(t, cmd.Wait())
	err = hostns.Do(t.Context(), dir, []string{"mnt"}, mustNotRun(t))
	require.ErrorContains(t, err, "enter "+dir+": open: no such process: ")
}

func TestNS2_MissingCapabilityIsNamed(t *testing.T) {
	testns.Root(t)
	target := foreign(t)
	for _, c := range []struct {
		name    string
		without []uintptr
		ns      []string
		target  string
		want    string
	}{
		{"ptrace", []uintptr{unix.CAP_SYS_PTRACE, unix.CAP_SYS_ADMIN}, []string{"mnt"}, target,
			"enter mnt namespace " + target + "/ns/mnt: open: permission denied: missing CAP_SYS_PTRACE\n"},
		{"admin", []uintptr{unix.CAP_SYS_ADMIN}, []string{"net"}, target,
			"enter net namespace " + target + "/ns/net: setns: operation not permitted: missing CAP_SYS_ADMIN\n"},
		{"chroot", []uintptr{unix.CAP_SYS_CHROOT}, []string{"mnt"}, target,
			"enter mnt namespace " + target + "/ns/mnt: setns: operation not permitted: missing CAP_SYS_CHROOT\n"},
		{"both", []uintptr{unix.CAP_SYS_CHROOT, unix.CAP_SYS_ADMIN}, []string{"mnt"}, target,
			"enter mnt namespace " + target + "/ns/mnt: setns: operation not permitted: missing CAP_SYS_ADMIN and CAP_SYS_CHROOT\n"},
		{"none needed for its own", []uintptr{unix.CAP_SYS_ADMIN}, []string{"net", "cgroup"}, "/proc/self", "<nil>\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, helper(t, "do", c.without, append([]string{c.target}, c.ns...)...))
		})
	}
}

// With every capability the error does not name one. A user namespace's owner
// has none outside.
func TestNS2_RefusedWithAllCapabilities(t *testing.T) {
	testns.Root(t)
	cmd := exec.Command("/proc/self/exe", foreign(t), "net")
	cmd.Env = append(os.Environ(), helperEnv+"=do")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}},
	}
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "permission denied (with the capabilities: refused by a seccomp or security module's profile, or owned by another user namespace)")
	require.NotContains(t, string(out), "missing")
}
