// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"path"
	"slices"
	"strings"
)

// sides lists the existing keys that the kernel also rewrites when the value at a
// path changes. It may list keys that do not change: only values that differ are
// put back later. Measured on Linux 6.18; in the source:
//
//   - IPv4 forwarding: ip_forward and conf/all/forwarding are one value, and
//     set every link's, the default and all/accept_redirects, to the opposite
//     (inet_forward_change, net/ipv4/devinet.c);
//   - any other conf/default value of IPv4 goes to each link whose own was
//     never set and that never had an address (devinet_copy_dflt_conf, there);
//   - four of IPv6's conf/all values go to every link and the default
//     (net/ipv6/addrconf.c);
//   - a link's stable_secret makes its addr_gen_mode 2, the default's that of every
//     link (there).
func sides(f Files, at string) ([]string, error) {
	var found []string
	for _, pattern := range sidePatterns(at) {
		paths, err := glob(f, pattern)
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			if p != at && !slices.Contains(found, p) {
				found = append(found, p)
			}
		}
	}
	return found, nil
}

func sidePatterns(at string) []string {
	dir, name := path.Split(at)
	switch {
	case at == "net/ipv4/ip_forward", at == "net/ipv4/conf/all/forwarding":
		return []string{"net/ipv4/ip_forward", "net/ipv4/conf/*/forwarding", "net/ipv4/conf/all/accept_redirects"}
	case dir == "net/ipv4/conf/default/" && name != "forwarding":
		return []string{"net/ipv4/conf/*/" + name}
	case dir == "net/ipv6/conf/all/" && slices.Contains(copied6(), name):
		return []string{"net/ipv6/conf/*/" + name}
	case at == "net/ipv6/conf/default/stable_secret":
		return []string{"net/ipv6/conf/*/addr_gen_mode"}
	case name == "stable_secret" && !strings.ContainsAny(dir, `*?[{\`): // it is a pattern
		return []string{dir + "addr_gen_mode"}
	}
	return nil
}

func copied6() []string {
	return []string{"forwarding", "disable_ipv6", "ignore_routes_with_linkdown", "addr_gen_mode"}
}

// forGood reports whether the kernel refuses to change the value again before the
// next boot (Documentation/admin-guide/sysctl/kernel.rst).
func forGood(at, value string) bool {
	once := []string{"kernel/unprivileged_bpf_disabled", "kernel/modules_disabled", "kernel/kexec_load_disabled"}
	return slices.Contains(once, at) && strings.TrimSpace(value) == "1"
}

// dragged returns the value that the kernel gives side when cause becomes value.
func dragged(side, cause, value string) string {
	if path.Base(cause) == "stable_secret" {
		return "2"
	}
	if path.Base(side) != "accept_redirects" || path.Base(cause) == "accept_redirects" {
		return value
	}
	if sameValue(cause, "0", value) {
		return "1"
	}
	return "0"
}

// oneValue reports whether both paths show the same kernel value.
func oneValue(a, b string) bool {
	names := []string{"net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding"}
	return slices.Contains(names, a) && slices.Contains(names, b)
}
