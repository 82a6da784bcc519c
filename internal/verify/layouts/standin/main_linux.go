// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command standin stands in for the programs other than nodeinit on a node laid out like
// a distribution's. It is linked statically, since not all of these have libraries.
//
//   - With CNI_COMMAND in its environment it is a CNI plugin, as far as nodeinit calls
//     one: it answers VERSION.
//   - "standin pod ROOT COMMAND..." is a container runtime: it runs the command as the
//     container of a pod.
//   - Otherwise it is any process, with whatever arguments, that runs until its
//     standard input ends.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const inside = "inside-the-pod"

func main() {
	if os.Getenv("CNI_COMMAND") != "" {
		fmt.Println(`{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0"]}`)
		return
	}
	var err error
	switch {
	case len(os.Args) > 3 && os.Args[1] == "pod":
		err = pod(os.Args[2:])
	case len(os.Args) > 3 && os.Args[1] == inside:
		err = container(os.Args[2], os.Args[3:])
	default:
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(125)
	}
}

// pod starts the container, in mount, pid, cgroup and uts namespaces of its own. Like an
// agent's pod, it is in the node's network.
func pod(args []string) error {
	cmd := exec.Command("/proc/self/exe", append([]string{inside}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC, Unshareflags: unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP,
		Pdeathsig: unix.SIGKILL,
	}
	return cmd.Run()
}

// container makes root, a directory, the read-only root of this process, with volumes for
// the node's /proc and the configuration, and becomes the command, with only the three
// capabilities of the shipped manifest.
func container(root string, command []string) error {
	runtime.LockOSThread() // capabilities belong to the thread
	volume := filepath.Join(root, "tmp/cilium")
	type mount struct {
		source, target, kind string
		flags                uintptr
	}
	mounts := []mount{{root, root, "", unix.MS_BIND}}
	if prefix := os.Getenv("HOST_PREFIX"); prefix != "" { // as older installers do
		mounts = append(mounts, mount{"/", filepath.Join(root, prefix), "", unix.MS_BIND | unix.MS_REC}, mount{"run", filepath.Join(root, "run"), "tmpfs", 0})
	}
	for _, m := range append(mounts, []mount{
		{"/proc", filepath.Join(root, "hostproc"), "", unix.MS_BIND | unix.MS_REC},
		{"proc", filepath.Join(root, "proc"), "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"config", volume, "tmpfs", 0},
		{"", root, "", unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY},
	}...) {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := errors.Join(unix.Unmount(".", unix.MNT_DETACH), unix.Chdir("/")); err != nil {
		return err
	}
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if slices.Contains([]uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SYS_PTRACE}, c) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL { // EINVAL: this kernel knows fewer
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Exec(command[0], command, os.Environ())
}
