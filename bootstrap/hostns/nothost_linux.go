// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/mountinfo"
)

func checkProc(proc string) error {
	dir := filepath.Join(proc, "1")
	if _, err := os.Stat(proc); err == nil && !isProcFS(proc) {
		return code.Errorf(code.HostNotHost, "%s: it is not a proc file system: mount the host's /proc there (hostPath: {path: /proc})", proc)
	}
	targets, err := openTargets(dir, []string{"mnt"})
	if err != nil {
		return err
	}
	defer closeTargets(targets)
	for _, t := range targets {
		if t.ns == "mnt" && t.isOwn() {
			return fmt.Errorf("%s: %w: its pid 1 is in this mount namespace: mount the host's /proc there (hostPath: {path: /proc})", proc, ErrNotHost)
		}
	}
	return nil
}

func checkPath(path string, check func(side, string) error) error {
	if surelyHost() {
		return nil
	}
	path, err := mountinfo.Resolve(path)
	if err != nil {
		return err
	}
	mounts, err := mountinfo.Read()
	if err != nil {
		return nil // without a /proc nothing can be determined
	}
	return check(side{mounts: mounts, init: initMounts(), net: ownNetwork()}, path)
}

// surelyHost reports whether this is pid 1's mount namespace and shows no sign of a
// container. That check is fast, however many mounts there are.
func surelyHost() bool {
	var one, own unix.Stat_t
	if unix.Stat("/proc/1/ns/mnt", &one) != nil || unix.Stat("/proc/thread-self/ns/mnt", &own) != nil || one.Dev != own.Dev || one.Ino != own.Ino {
		return false
	}
	var root unix.Statfs_t
	if unix.Statfs("/", &root) != nil || int64(root.Type) == unix.OVERLAYFS_SUPER_MAGIC {
		return false
	}
	return !slices.ContainsFunc(kubeletFiles(), func(path string) bool {
		var st unix.Statx_t
		err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &st)
		return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	})
}

// firstOnly is a value that the kernel has for its first network namespace only, on any
// configuration: net_core_table in net/core/sysctl_net_core.c is registered for init_net.
// Which namespace's values it shows depends on the thread that reads.
const firstOnly = "/proc/sys/net/core/netdev_max_backlog"

// ownNetwork looks at the network namespaces of the thread and of its pid 1.
func ownNetwork() (n network) {
	var st unix.Stat_t
	n.first = unix.Stat(firstOnly, &st) == nil && isProcFS(firstOnly)
	n.own, _ = os.Readlink("/proc/thread-self/ns/net")
	n.init, _ = os.Readlink("/proc/1/ns/net")
	return n
}

// initMounts lists the mounts of this thread's pid 1. It returns nil if they cannot
// be seen: permission is missing, or /proc belongs to another pid namespace.
func initMounts() []mountinfo.Mount {
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(status)) {
		if pids, ok := strings.CutPrefix(line, "NSpid:"); ok && len(strings.Fields(pids)) != 1 {
			return nil
		}
	}
	f, err := os.Open(mountinfo.InitPath)
	if err != nil {
		return nil
	}
	defer f.Close()
	mounts, err := mountinfo.Parse(f)
	if err != nil {
		return nil
	}
	return mounts
}
