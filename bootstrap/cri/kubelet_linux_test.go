// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/internal/critest"
)

// nobody is a user who is not root.
const nobody = 65534

// standIn is the variable that makes this program a stand-in, which waits. Its value is what
// the stand-in does first: nothing, or listen.
const (
	standIn    = "SLIPWAY_STAND_IN"
	waits      = "waits"
	listens    = "listens"      // at the path that is its argument
	listensAt3 = "listens at 3" // a socket
	finds      = "finds"        // finds the runtime, and ends
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(standIn) {
	case "":
		os.Exit(m.Run())
	case waits:
		// A set-user-id program becomes root in full, as sudo does, before it asks anything;
		// a program that root runs, or without such a bit, keeps its user.
		_ = syscall.Setresgid(0, 0, 0)
		_ = syscall.Setresuid(0, 0, 0)
	case finds:
		found, err := cri.Find(context.Background(), "")
		fmt.Print(found.Path, err)
		return
	case listens:
		_, err = net.Listen("unix", os.Args[1])
	case listensAt3:
		err = unix.Listen(3, 100)
	}
	fmt.Println("running", err)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// program copies this program, with a name and a mode, to its own directory that every user can
// reach.
func program(t *testing.T, name string, mode os.FileMode) (path string) {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	path = filepath.Join(reachable(t, t.TempDir()), name)
	require.NoError(t, errors.Join(os.WriteFile(path, self, 0o755), os.Chmod(path, mode)))
	return path
}

// reachable lets every user reach one of a test's directories.
func reachable(t *testing.T, dir string) string {
	t.Helper()
	require.NoError(t, errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)))
	return dir
}

// start runs one of the test's programs, and waits until it is the stand-in.
func start(t *testing.T, cmd *bootstraptest.Cmd, what ...string) {
	t.Helper()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), standIn + "=" + cmp.Or(append(what, waits)...)}
	_, err := cmd.StdinPipe() // open until the node ends
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "running <nil>\n", said)
}

// asNobody runs a program as an ordinary user of the node.
func asNobody() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// of returns a field of a process's status.
func of(t *testing.T, pid int, field string) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "\n"+field+":\t")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// allCapabilities gives a file every capability that it can have (struct vfs_cap_data,
// version 2, whose effective bit is set).
func allCapabilities(t *testing.T, path string) {
	t.Helper()
	most, err := strconv.ParseUint(of(t, os.Getpid(), "CapBnd"), 16, 64)
	require.NoError(t, err)
	var data bytes.Buffer
	require.NoError(t, binary.Write(&data, binary.LittleEndian, []uint32{0x02000001, uint32(most), 0, uint32(most >> 32), 0}))
	require.NoError(t, unix.Setxattr(path, "security.capability", data.Bytes(), 0))
}

// A local user has a process named kubelet whose flags name his own socket. With a
// set-user-id program he is root, or seems to be. Whatever he runs, and however early,
// Find returns the same runtime as without him, or the one that the real kubelet names.
func TestSEC11_NoProcessIsTheKubeletByName(t *testing.T) {
	const roots = "0\t0\t0\t0"
	for name, tc := range map[string]struct {
		program string // its name, if not kubelet
		mode    os.FileMode
		prepare func(t *testing.T, path string)
		attr    *syscall.SysProcAttr
		by      []string // what runs it, if not the test itself
		after   func(path string) error
		users   string
	}{
		"su, by a link named kubelet": {program: "su", mode: 0o755 | os.ModeSetuid, attr: asNobody(), users: roots},
		"su, named kubelet":           {mode: 0o755 | os.ModeSetuid, attr: asNobody(), users: roots},
		"a program with capabilities": {mode: 0o755, prepare: allCapabilities, attr: asNobody(), users: roots},
		"a program of his":            {mode: 0o755, attr: asNobody(), users: "65534\t65534\t65534\t65534"},
		"root's, set-group-id":        {mode: 0o755 | os.ModeSetgid, users: roots},
		"root's, of another name":     {program: "sh", mode: 0o755, users: roots},
		"root's, in a world-writable directory": {mode: 0o755, users: roots, prepare: func(t *testing.T, path string) {
			require.NoError(t, os.Chmod(filepath.Dir(path), 0o777))
		}},
		"root's, that a group may change": {mode: 0o755, users: roots, prepare: func(t *testing.T, path string) {
			require.NoError(t, errors.Join(os.Chown(path, 0, nobody), os.Chmod(path, 0o775)))
		}},
		"su, removed while it runs": {mode: 0o755 | os.ModeSetuid, attr: asNobody(), users: roots, after: os.Remove},
		"root's, removed from a world-writable directory": {mode: 0o755, users: roots, after: func(path string) error {
			return errors.Join(os.Remove(path), os.Chmod(filepath.Dir(path), 0o777|os.ModeSticky))
		}},
		"root's, replaced by a user's": {mode: 0o755, users: roots, after: func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o755), os.Chown(filepath.Dir(path), nobody, nobody))
		}},
		"a container's":                  {mode: 0o755, by: []string{"unshare", "--pid", "--fork", "--kill-child"}, users: roots},
		"root of another user namespace": {mode: 0o755, by: []string{"unshare", "--user", "--map-root-user"}, users: roots},
	} {
		t.Run(name, func(t *testing.T) {
			node := bootstraptest.NewNode(t)
			critest.Serve(t, listenOn(t, node, usual), critest.Runtime{})
			dir := reachable(t, t.TempDir())
			his, err := net.Listen("unix", filepath.Join(dir, "s"))
			require.NoError(t, err)
			critest.Serve(t, his, critest.Runtime{Info: critest.Containerd(nil, "/etc/his", "/tmp/his")})

			path := program(t, "kubelet", tc.mode)
			if tc.program != "" {
				require.NoError(t, os.Rename(path, filepath.Join(filepath.Dir(path), tc.program)))
				require.NoError(t, os.Symlink(tc.program, path))
			}
			if tc.prepare != nil {
				tc.prepare(t, path)
			}
			args := slices.Concat(tc.by, []string{path, "--container-runtime-endpoint=unix://" + his.Addr().String()})
			cmd := node.Command(args[0], args[1:]...)
			cmd.SysProcAttr = tc.attr
			start(t, cmd)
			require.Equal(t, tc.users, of(t, cmd.Process.Pid, "Uid"))
			if tc.after != nil {
				require.NoError(t, tc.after(path))
			}
			requireFound(t, node.Proc(), usual)

			const other = "/run/crio/crio.sock"
			critest.Serve(t, listenOn(t, node, other), critest.Runtime{})
			start(t, node.Command(program(t, "kubelet", 0o755), "--container-runtime-endpoint=unix://"+other))
			requireFound(t, node.Proc(), other)
		})
	}
}

// With the kubelet's driver cgroupfs, a pod in its own cgroup namespace sees another
// pod's cgroup without kubepods in it.
func TestSEC11_APodBesideOursIsAPod(t *testing.T) {
	node := bootstraptest.NewNode(t)
	critest.Serve(t, listenOn(t, node, usual), critest.Runtime{})
	in := func(pod string, program ...string) *bootstraptest.Cmd {
		const enter = `mkdir -p $1; echo $$ > $1/cgroup.procs; shift; exec "$@"`
		return node.Command("sh", append([]string{"-ec", enter, "sh", "/sys/fs/cgroup/kubepods/besteffort/" + pod + "/c"}, program...)...)
	}
	start(t, in("pod0f5d1e3a-7a0c-4d7e-9b51-5c0f7a3d2b11", program(t, "kubelet", 0o755), "--container-runtime-endpoint=unix:///run/acme.socket"))
	ours := in("pod7c3b9d44-11fe-4b0d-8a3e-c9d0e1f2a3b4", "unshare", "--cgroup", program(t, "agent", 0o755))
	ours.Env = []string{"PATH=" + os.Getenv("PATH"), standIn + "=" + finds}
	found, err := ours.Output()
	require.NoError(t, err)
	require.Equal(t, usual+"<nil>", string(found))
}

// A kubelet counts as one while it is upgraded, in its own mount namespace, and as part of
// another program.
func TestSEC11_AKubeletIsKnownAlsoDuringItsUpgradeAndInAnotherProgram(t *testing.T) {
	for name, tc := range map[string]struct {
		program string
		attr    *syscall.SysProcAttr
		after   func(path string) error
	}{
		"kubelet":                    {program: "kubelet"},
		"of a version":               {program: "kubelet-1.34.2"},
		"in k3s":                     {program: "k3s"},
		"of kubens":                  {program: "kubelet", attr: &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}},
		"replaced while it runs":     {program: "kubelet", after: os.Remove},
		"removed with its directory": {program: "kubelet", after: func(path string) error { return os.RemoveAll(filepath.Dir(path)) }},
		"replaced by another's file": {program: "kubelet", after: func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o755)) }},
	} {
		t.Run(name, func(t *testing.T) {
			node := bootstraptest.NewNode(t)
			for _, path := range []string{usual, "/run/acme.socket"} {
				critest.Serve(t, listenOn(t, node, path), critest.Runtime{})
			}
			path := program(t, tc.program, 0o755)
			cmd := node.Command(path, "--container-runtime-endpoint=unix:///run/acme.socket")
			cmd.SysProcAttr = tc.attr
			start(t, cmd)
			if tc.after != nil {
				require.NoError(t, tc.after(path))
			}
			requireFound(t, node.Proc(), "/run/acme.socket")
		})
	}
}

// The kernel's status of a process is judged one line at a time.
func TestSEC11_AKubeletIsTheHostsRoots(t *testing.T) {
	for name, spoil := range map[string]func(h *host, at string){
		"a user's, in one of four":       func(h *host, at string) { h.edit(at+"/status", "Uid:\t0\t0\t0\t0", "Uid:\t0\t0\t0\t1000") },
		"set-user-id, before it is root": func(h *host, at string) { h.edit(at+"/status", "Uid:\t0\t0\t0\t0", "Uid:\t1000\t0\t0\t0") },
		"without CAP_SYS_ADMIN": func(h *host, at string) {
			h.edit(at+"/status", "CapEff:\t000001ffffffffff", "CapEff:\t000001ffffdfffff")
		},
		"in a pod": func(h *host, at string) {
			h.write(at+"/cgroup", "0::/kubepods.slice/kubepods-pod12.slice/cri-containerd-34.scope\n")
		},
		"in a pod, of cgroups of version 1": func(h *host, at string) { h.write(at+"/cgroup", "12:pids:/kubepods/pod12/34\n0::/\n") },
		"in a static pod beside ours":       func(h *host, at string) { h.write(at+"/cgroup", "0::/../../pod0f5d1e3a7a0c4d7e9b515c0f7a3d2b11/34\n") },
		"in a cgroup that a pod has named": func(h *host, at string) {
			h.write(at+"/cgroup", "0::/kubepods.slice/kubepods-pod12.slice/x (deleted)\n")
		},
		"in another pid namespace":  func(h *host, at string) { h.replace(at + "/ns/pid") },
		"in another user namespace": func(h *host, at string) { h.replace(at + "/ns/user") },
		"another program by now":    func(h *host, at string) { h.write(at+"/maps", "") },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.listen(usual)
			h.listen("/run/acme.socket")
			h.process("812", "kubelet", "kubelet", "--container-runtime-endpoint=unix:///run/acme.socket")
			requireFound(t, h.proc, "/run/acme.socket")
			spoil(h, filepath.Join(h.proc, "812"))
			requireFound(t, h.proc, usual)
		})
	}
}

// Some hosts drop capabilities from all processes, and some are containers in a pod.
func TestAHostWithFewerCapabilitiesOrInAPodHasItsKubelet(t *testing.T) {
	h := newHost(t)
	h.listen(usual)
	h.listen("/run/acme.socket")
	h.process("812", "kubelet", "kubelet", "--container-runtime-endpoint=unix:///run/acme.socket")
	for _, pid := range []string{"1", "812"} {
		at := filepath.Join(h.proc, pid)
		h.edit(at+"/status", "CapEff:\t000001ffffffffff\nCapBnd:\t000001ffffffffff", "CapEff:\t000001ffffbeffff\nCapBnd:\t000001ffffbeffff")
		h.write(at+"/cgroup", "0::/kubepods.slice/kubepods-pod12.slice/cri-containerd-34.scope/system.slice\n")
	}
	requireFound(t, h.proc, "/run/acme.socket")
}

// A process that cannot be examined does not count as foreign: it may be the kubelet.
func TestSEC11_AProcessThatCannotBeExaminedIsAnError(t *testing.T) {
	node := bootstraptest.NewNode(t)
	critest.Serve(t, listenOn(t, node, usual), critest.Runtime{})
	err := withoutPtrace(t, func() error {
		_, err := cri.Find(t.Context(), node.Proc())
		return err
	})
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorIs(t, err, cri.ErrUnproven)
	require.ErrorContains(t, err, "needs CAP_SYS_PTRACE in the user namespace of the process")
}

// withoutPtrace calls f on a thread that lacks CAP_SYS_PTRACE, and is thrown away.
func withoutPtrace(t *testing.T, f func() error) error {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var caps [2]unix.CapUserData
		err := unix.Capget(&header, &caps[0])
		for _, set := range []*uint32{&caps[0].Effective, &caps[0].Permitted} {
			*set &^= 1 << unix.CAP_SYS_PTRACE
		}
		if err == nil {
			err = unix.Capset(&header, &caps[0])
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}
