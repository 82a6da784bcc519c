// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// networkCards are names of the node's own links, which no rule may match.
func networkCards() []string {
	return []string{"lo", "eth0", "eno1", "ens3", "enp1s0", "wlan0", "bond0"}
}

// sharedPins are the directories of a BPF file system that iproute2 makes for
// everybody.
func sharedPins() []string {
	return []string{"tc", "tc/globals", "ip", "ip/globals", "xdp", "xdp/globals"}
}

// nftNameBytes is how long a name of nftables can be (NFT_NAME_MAXLEN - 1).
const nftNameBytes = 255

// sharedNFTables are names of tables that the tools for iptables, and firewalls
// of whole nodes, make.
func sharedNFTables() []string {
	return []string{"filter", "nat", "mangle", "raw", "security", "broute", "firewalld"}
}

// sharedDirs are directories below those at the root, which many programs of a
// node put something into.
func sharedDirs() []string {
	return []string{
		"/etc/cni/net.d", "/etc/kubernetes", "/etc/sysctl.d", "/etc/systemd", "/opt/cni/bin",
		"/run/containerd", "/run/crio", "/run/dbus", "/run/lock", "/run/netns", "/run/systemd", "/run/udev", "/run/user",
		"/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/local/bin", "/usr/sbin", "/usr/share",
		"/var/cache", "/var/lib/containerd", "/var/lib/containers", "/var/lib/etcd", "/var/lib/kubelet",
		"/var/log", "/var/lock", "/var/mail", "/var/run", "/var/spool", "/var/tmp",
	}
}

// ownable refuses to have an agent own what is the system's: a directory at the
// root, or one that it shares with others, and whatever the kernel shows in
// /proc, /sys and /dev.
func ownable(what, given string) error {
	name := inRun(given)
	isShared := func(dir string) bool { return dir == name || strings.HasPrefix(dir, name+"/") }
	for _, kernels := range []string{"/proc/", "/sys/", "/dev/"} {
		if strings.HasPrefix(name+"/", kernels) {
			return fmt.Errorf("cleanup: ownership: %s %s: what is in %s is nobody's to own", what, given, kernels)
		}
	}
	if strings.Count(name, "/") == 1 || slices.ContainsFunc(sharedDirs(), isShared) {
		return fmt.Errorf("cleanup: ownership: %s %s: it is the system's", what, given)
	}
	return nil
}

// inRun returns a clean path, in /run if it is in /var/run, which leads there.
func inRun(name string) string {
	name = path.Clean(name)
	if rest, ok := strings.CutPrefix(name, "/var/run/"); ok {
		return "/run/" + rest
	}
	return name
}
