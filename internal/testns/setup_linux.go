// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// stage is where the new root is assembled: every machine has this directory, and the
// node gets a /sys of its own.
const stage = "/sys"

// setup makes the node's file system and name. It runs inside the node, where its mounts
// are private.
type setup struct {
	hostname    string
	first       []hierarchy            // hierarchies of version 1 that the node has too
	root        func(dir string) error // if nil, the usual one
	machineProc unix.Stat_t            // the machine's /proc: if it is visible, none of this may run
}

func (s setup) run(context.Context) error {
	var proc unix.Stat_t
	if err := unix.Stat("/proc", &proc); err != nil || proc.Dev == s.machineProc.Dev {
		return errors.Join(errors.New("not in the node's mount namespace"), err)
	}
	if err := unix.Sethostname([]byte(s.hostname)); err != nil {
		return fmt.Errorf("set the host name %q: %w", s.hostname, err)
	}
	for _, step := range []func() error{
		loopbackUp, s.buildRoot, buildDev, kernelMounts, s.mountHierarchies, enterRoot, protectMachine,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "") // among the node's processes: the parent of / is no peer
}

// ownDirs are the node's own. Every other directory of the machine's root is shown
// unchanged.
var ownDirs = map[string]fs.FileMode{
	"boot": 0o755, "dev": 0o755, "etc": 0o755, "media": 0o755, "mnt": 0o755, "opt": 0o755, "proc": 0o555,
	"run": 0o755, "run/lock": 0o1777, "srv": 0o755, "sys": 0o555,
	"var": 0o755, "var/cache": 0o755, "var/lib": 0o755, "var/log": 0o755, "var/tmp": 0o1777,
}

// readOnly are the machine's directories of programs.
var readOnly = map[string]bool{"usr": true, "bin": true, "sbin": true, "lib": true, "lib32": true, "lib64": true, "libx32": true, "nix": true}

func (s setup) buildRoot() error {
	if err := mount("node", stage, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	if s.root != nil {
		return s.root(stage)
	}
	if err := showMachine(); err != nil {
		return err
	}
	return s.buildEtc()
}

// showMachine fills the node's root with directories of its own, and the machine's.
func showMachine() error {
	entries, err := os.ReadDir("/")
	if err != nil {
		return fmt.Errorf("list the machine's root: %w", err)
	}
	if err := makeOwnDirs(); err != nil {
		return err
	}
	for _, e := range entries {
		if _, own := ownDirs[e.Name()]; own {
			continue
		}
		if err := show(e); err != nil {
			return fmt.Errorf("show /%s on the node: %w", e.Name(), err)
		}
	}
	return nil
}

func makeOwnDirs() error {
	var errs []error
	for name, mode := range ownDirs {
		path := filepath.Join(stage, name)
		// The process's umask holds for all its threads, so it is not set here.
		errs = append(errs, os.MkdirAll(path, 0o755), unix.Chmod(path, uint32(mode)))
	}
	errs = append(errs,
		os.Symlink("/run", filepath.Join(stage, "var/run")),
		os.Symlink("/run/lock", filepath.Join(stage, "var/lock")))
	return errors.Join(errs...)
}

// show makes a directory of the machine's root visible in the node's. Files are not
// shown.
func show(e fs.DirEntry) error {
	from, to := filepath.Join("/", e.Name()), filepath.Join(stage, e.Name())
	switch {
	case e.Type() == fs.ModeSymlink:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case !e.IsDir():
		return nil
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	if err := mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil || !readOnly[e.Name()] {
		return err
	}
	return mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// etcFiles are the files that programs need to start, to look up users and to find their
// libraries and names. They are copied, so that changing them changes only the node's.
var etcFiles = []string{
	"alternatives", "group", "hosts", "ld.so.cache", "ld.so.conf", "nsswitch.conf", "passwd", "protocols", "services",
}

func (s setup) buildEtc() error {
	args := []string{"-a", "--"}
	for _, name := range etcFiles {
		if path := filepath.Join("/etc", name); exists(path) {
			args = append(args, path)
		}
	}
	etc := filepath.Join(stage, "etc")
	if out, err := exec.Command("cp", append(args, etc)...).CombinedOutput(); err != nil {
		return fmt.Errorf("copy files of /etc: %w: %s", err, out)
	}
	return os.WriteFile(filepath.Join(etc, "hostname"), []byte(s.hostname+"\n"), 0o644)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func buildDev() error {
	dev := filepath.Join(stage, "dev")
	if err := mount("dev", dev, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755"); err != nil {
		return err
	}
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9} {
		path := filepath.Join(dev, name)
		if err := errors.Join(unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))), unix.Chmod(path, 0o666)); err != nil {
			return fmt.Errorf("make device /dev/%s (needs CAP_MKNOD): %w", name, err)
		}
	}
	var errs []error
	for name, target := range map[string]string{"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		errs = append(errs, os.Symlink("/proc/self/"+target, filepath.Join(dev, name)))
	}
	shm := filepath.Join(dev, "shm")
	return errors.Join(append(errs, os.Mkdir(shm, 0o755), unix.Chmod(shm, 0o1777))...)
}

// kernelMounts puts the kernel's file systems in place: those of the node's pid,
// net and cgroup namespaces.
func kernelMounts() error {
	return errors.Join(
		mount("/proc", filepath.Join(stage, "proc"), "", unix.MS_MOVE, ""),
		mount("sysfs", filepath.Join(stage, "sys"), "sysfs", hardened|unix.MS_RDONLY, ""),
		mount("cgroup2", filepath.Join(stage, "sys/fs/cgroup"), "cgroup2", hardened, ""),
	)
}

// enterRoot makes stage the root of pid 1 and of this thread, and detaches the machine's
// (pivot_root(2), "pivot_root(".", ".")").
func enterRoot() error {
	err := unix.Chdir(stage)
	if err == nil {
		err = unix.PivotRoot(".", ".")
	}
	if errors.Is(err, unix.EINVAL) {
		err = fmt.Errorf("%w: the machine's root is its initramfs (%w)", err, errors.ErrUnsupported)
	}
	if err == nil {
		err = unix.Unmount(".", unix.MNT_DETACH)
	}
	if err != nil {
		return fmt.Errorf("enter the node's root: %w", err)
	}
	return unix.Chdir("/")
}

// protectMachine makes the machine's parts of /proc read-only.
func protectMachine() error {
	if err := protectSysctls(true); err != nil {
		return err
	}
	for _, path := range []string{"/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"} {
		err := mount(path, path, "", unix.MS_BIND, "")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = mount("", path, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|hardened, "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}
