// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// An object of the ledger is a dotted key, in the one spelling of those that stand for the
// same kernel value. If a link has the value, # and the index of the link follow: another
// link that gets the same name later has other values.

const ipForward = "net/ipv4/ip_forward"

// finer is the name of a value in its finest unit, by that in a coarser one: the kernel has
// one value, and rounds what it prints in the other unit.
var finer = map[string]string{
	"base_reachable_time": "base_reachable_time_ms",
	"gc_min_interval":     "gc_min_interval_ms",
	"retrans_time":        "retrans_time_ms",
	"unres_qlen":          "unres_qlen_bytes",
}

// oneName returns the path by which a value is recorded.
func oneName(at string) string {
	dir, name := path.Split(at)
	if at == "net/ipv4/conf/all/forwarding" {
		return ipForward
	}
	if fine, isCoarse := finer[name]; isCoarse && strings.HasPrefix(dir, "net/") {
		return dir + fine
	}
	return at
}

// coarser returns the path of the same value in a coarser unit; empty: there is none.
func coarser(at string) string {
	for coarse, fine := range finer {
		if dir, name := path.Split(at); name == fine && strings.HasPrefix(dir, "net/") {
			return dir + coarse
		}
	}
	return ""
}

// cutIndex splits an object into its key and the index of a link; zero: it is no link's.
func cutIndex(object string) (key Key, index int) {
	i := strings.LastIndexByte(object, '#')
	if i >= 0 {
		if n, err := strconv.Atoi(object[i+1:]); err == nil && n > 0 {
			return Key(object[:i]), n
		}
	}
	return Key(object), 0
}

// pathOf returns the path of an object, which is a valid key.
func pathOf(object string) string {
	key, _ := cutIndex(object)
	at, _ := key.path()
	return at
}

// canonical returns the object of a key.
func (v *values) canonical(object string) (string, error) {
	key, index := cutIndex(object)
	at, err := key.path()
	if err != nil {
		return object, err
	}
	at = oneName(at)
	if index == 0 {
		if index, err = v.indexOf(at); err != nil {
			return object, err
		}
	}
	if index == 0 {
		return string(keyOf(at)), nil
	}
	return fmt.Sprintf("%s#%d", keyOf(at), index), nil
}

// indexOf returns the index of the link that has the value at a path; zero: none has.
func (v *values) indexOf(at string) (int, error) {
	indexer, ok := v.files().(linkIndexer)
	if link := linkIn(at); ok && link != "" {
		return indexer.LinkIndex(link)
	}
	return 0, nil
}

// linkIn returns the link that has the value at a path; empty: none has.
func linkIn(at string) string {
	e := strings.Split(at, "/")
	if len(e) < 5 || e[0] != "net" || e[1] != "ipv4" && e[1] != "ipv6" || e[2] != "conf" && e[2] != "neigh" || e[3] == "all" || e[3] == "default" {
		return ""
	}
	return e[3]
}
