// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// along lists the existing values that the kernel also rewrites when an object becomes to.
// Measured on Linux 6.18; in the source:
//
//   - IPv4 forwarding sets every link's, the default and all/accept_redirects, to the
//     opposite (inet_forward_change, net/ipv4/devinet.c);
//   - any other conf/default value of IPv4 goes to each link whose own was
//     never set and that never had an address (devinet_copy_dflt_conf, there);
//   - four of IPv6's conf/all values go to every link and the default
//     (net/ipv6/addrconf.c);
//   - a link's stable_secret makes its addr_gen_mode 2, the default's that of every
//     link (there).
//
// A key that the kernel does not have is an error: nothing makes one.
func (v *values) along(_ context.Context, object string, to ledger.State) (sides []ledger.Side, err error) {
	at := pathOf(object)
	if !exists(v.files(), at) {
		_, err := v.look(at)
		return nil, fmt.Errorf("set %s = %s: %w", keyOf(at), shown(keyOf(at), to.Value), err)
	}
	kind := v.kind()
	for _, pattern := range sidePatterns(at) {
		paths, err := glob(v.files(), pattern)
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			if oneName(p) != at {
				sides = append(sides, ledger.Side{Kind: kind, Object: string(keyOf(p)), To: state(dragged(p, at, to.Value))})
			}
		}
	}
	return sides, nil
}

func sidePatterns(at string) []string {
	dir, name := path.Split(at)
	switch {
	case at == ipForward:
		return []string{"net/ipv4/conf/*/forwarding", "net/ipv4/conf/all/accept_redirects"}
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
