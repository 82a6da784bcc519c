// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const diskEnv = "SLIPWAY_NEIGHBOURS_DISK"

// TestMain gives root's tests a disk without waiting for a device: an overlay of a tmpfs,
// which is not a tmpfs itself, so that its files outlive reboots. It is in the mount
// namespace of another process, all of whose threads see it.
func TestMain(m *testing.M) {
	switch dir := os.Getenv(diskEnv); {
	case dir != "":
		if err := mountDisk(dir); err != nil {
			fmt.Fprintln(os.Stderr, "the disk of the machine is used:", err)
		}
	case os.Geteuid() == 0:
		os.Exit(again())
	}
	os.Exit(m.Run())
}

// again runs this program in a mount namespace of its own.
func again() int {
	runtime.LockOSThread() // whose end would end the program
	dir, err := os.MkdirTemp("", "slipway-neighbours-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.Remove(dir)
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), diskEnv+"="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

func mountDisk(dir string) error {
	disk := filepath.Join(dir, "disk")
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700")
	for _, name := range []string{"lower", "upper", "work", "disk"} {
		err = cmp.Or(err, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)
	return cmp.Or(err, unix.Mount("overlay", disk, "overlay", 0, options), os.Setenv("TMPDIR", disk))
}
