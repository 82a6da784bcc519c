// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// prepare sets up the machine, and returns the parameters in the kernel's command line.
func prepare() (options map[string]string, err error) {
	if err := errors.Join(mount("proc", "/proc", 0, ""), mount("devtmpfs", "/dev", 0, "")); err != nil {
		return nil, err
	}
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return nil, err
	}
	options = map[string]string{}
	for _, word := range strings.Fields(string(line)) {
		if name, value, ok := strings.Cut(strings.TrimPrefix(word, "slipway."), "="); ok {
			options[name] = value
		}
	}
	if err = enterDebian(); err == nil {
		err = rest(options["cgroup"])
	}
	return options, errors.Join(err, plainConsole())
}

func mount(kind, at string, flags uintptr, data string) error {
	return mountOf(kind, at, kind, flags, data)
}

func mountOf(source, at, kind string, flags uintptr, data string) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, at, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", kind, at, err)
	}
	return nil
}

// enterDebian loads the disks' drivers, and makes the Debian the root.
func enterDebian() error {
	modules, err := filepath.Glob("/modules/*") // in the order of their dependencies
	for _, module := range modules {
		err = errors.Join(err, load(module))
	}
	err = errors.Join(err,
		disk("/dev/vda", "/new", 0), disk("/dev/vdb", "/new/lib/modules", unix.MS_RDONLY), disk("/dev/vdc", "/new/t", unix.MS_RDONLY))
	if err != nil {
		return err
	}
	if err := copyFile("/init", "/new/usr/bin/refuse"); err != nil {
		return err
	}
	// pivot_root(2) does not work on the root that a kernel starts with.
	return errors.Join(copyFile("/bin/nodeinit", "/new/usr/bin/nodeinit"),
		unix.Mount("/dev", "/new/dev", "", unix.MS_MOVE, ""), unix.Mount("/proc", "/new/proc", "", unix.MS_MOVE, ""),
		os.Chdir("/new"), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), os.Chdir("/"))
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

func load(module string) error {
	f, err := os.Open(module)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("load %s: %w", module, err)
	}
	return nil
}

// disk waits for a disk, which appears a moment after its driver is loaded.
func disk(device, at string, flags uintptr) error {
	for range 500 {
		if _, err := os.Stat(device); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return mountOf(device, at, "ext4", flags, "")
}

// rest mounts the file systems that every Linux system has, shared as systemd does.
func rest(layout string) error {
	const safe = unix.MS_NOSUID | unix.MS_NODEV
	err := errors.Join(
		mount("sysfs", "/sys", safe|unix.MS_NOEXEC, ""), mount("tmpfs", "/run", safe, "mode=755"),
		mount("devpts", "/dev/pts", 0, "mode=620,ptmxmode=666"), mount("tmpfs", "/dev/shm", safe, "mode=1777"),
		os.Chmod("/tmp", 0o1777|os.ModeSticky), os.Symlink("/proc/self/fd", "/dev/fd"), os.MkdirAll("/run/lock", 0o755),
		mount("securityfs", "/sys/kernel/security", safe|unix.MS_NOEXEC, ""),
		cgroups(layout), unix.Sethostname([]byte("vm")), loopback(),
		os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), os.Setenv("HOME", "/root"),
		unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, ""))
	if err != nil {
		return err
	}
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
}

// cgroups mounts the cgroup hierarchies as distributions do.
func cgroups(layout string) error {
	const root, flags = "/sys/fs/cgroup", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if layout == "unified" {
		return mount("cgroup2", root, flags, "")
	}
	err := mount("tmpfs", root, flags, "mode=755")
	if layout == "hybrid" {
		err = errors.Join(err, mount("cgroup2", root+"/unified", flags, ""))
	}
	err = errors.Join(err, mountOf("cgroup", root+"/systemd", "cgroup", flags, "none,name=systemd"))
	list, readErr := os.ReadFile("/proc/cgroups")
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) == 4 && !strings.HasPrefix(line, "#") && f[3] == "1" {
			mountErr := mountOf("cgroup", filepath.Join(root, f[0]), "cgroup", flags, f[0])
			if !errors.Is(mountErr, unix.EINVAL) { // this kernel has the controller, but not for v1
				err = errors.Join(err, mountErr)
			}
		}
	}
	return errors.Join(err, readErr)
}

func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// plainConsole makes the console keep line ends as written.
func plainConsole() error {
	console, err := unix.IoctlGetTermios(1, unix.TCGETS)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	console.Oflag &^= unix.OPOST
	return unix.IoctlSetTermios(1, unix.TCSETS, console)
}
