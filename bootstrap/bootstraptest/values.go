// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
)

const procSys = "/proc/sys/"

func (k *Kernel) boot(links []string) {
	k.boots++
	k.values = map[string]string{
		"kernel/random/boot_id":            fmt.Sprintf("00000000-0000-4000-8000-%012d", k.boots),
		"kernel/timer_migration":           "1",
		"kernel/unprivileged_bpf_disabled": "2",
		"net/core/bpf_jit_enable":          "1",
		"net/ipv4/fib_multipath_use_neigh": "0",
		"net/ipv4/ip_forward":              "0",
		"net/ipv4/tcp_rmem":                "4096\t131072\t6291456",
	}
	if k.indexes == nil {
		k.indexes = map[string]int{}
	}
	for _, link := range append([]string{"all", "default"}, links...) {
		k.addConf(link, map[string]string{"accept_redirects": "1", "forwarding": "0", "rp_filter": "0", "send_redirects": "1"},
			map[string]string{"accept_ra": "1", "accept_redirects": "1", "disable_ipv6": "0", "forwarding": "0"})
	}
	k.routers = nil
}

func (k *Kernel) addConf(link string, v4, v6 map[string]string) {
	if _, ok := k.indexes[link]; !ok && link != "all" && link != "default" {
		k.newest++
		k.indexes[link] = k.newest
	}
	for name, value := range v4 {
		k.values[path.Join("net/ipv4/conf", link, name)] = value
	}
	for name, value := range v6 {
		k.values[path.Join("net/ipv6/conf", link, name)] = value
	}
}

// AddLink adds a link, which gets its values from conf/default.
func (k *Kernel) AddLink(link string) {
	defer k.lock()()
	k.addConf(link, k.below("net/ipv4/conf/default/"), k.below("net/ipv6/conf/default/"))
}

// LinkIndex returns the index of a link. One that is added again has another.
func (k *Kernel) LinkIndex(link string) (int, error) {
	if k == nil {
		return 0, k.refused("index", link)
	}
	defer k.lock()()
	if k.indexes[link] == 0 {
		return 0, syscall.ENODEV
	}
	return k.indexes[link], nil
}

func (k *Kernel) below(prefix string) map[string]string {
	found := map[string]string{}
	for name, value := range k.values {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			found[rest] = value
		}
	}
	return found
}

// RemoveLink removes a link with its keys and routes.
func (k *Kernel) RemoveLink(link string) {
	defer k.lock()()
	maps.DeleteFunc(k.values, func(name, _ string) bool {
		return strings.HasPrefix(name, "net/ipv4/conf/"+link+"/") || strings.HasPrefix(name, "net/ipv6/conf/"+link+"/")
	})
	k.routers = slices.DeleteFunc(k.routers, func(r string) bool { return r == link })
	delete(k.indexes, link)
}

// LearnRouter gives link an IPv6 default route from router advertisements.
func (k *Kernel) LearnRouter(link string) {
	defer k.lock()()
	k.routers = append(k.routers, link)
}

// links lists them, lo among them.
func (k *Kernel) links() []string {
	return slices.DeleteFunc(k.list("net/ipv4/conf"), func(l string) bool { return l == "all" || l == "default" })
}

// Deafen makes writes to key succeed and change nothing, as some security
// modules do.
func (k *Kernel) Deafen(key string) {
	defer k.lock()()
	if k.deaf == nil {
		k.deaf = map[string]bool{}
	}
	k.deaf[slashes(key)] = true
}

// PutValue makes or changes a key as another program would, with the kernel's rules for
// an existing one. It panics if the kernel would refuse.
func (k *Kernel) PutValue(key, value string) {
	defer k.lock()()
	name := slashes(key)
	if _, exists := k.values[name]; !exists {
		k.values[name] = value
		return
	}
	if err := k.set(name, value); err != nil {
		panic(fmt.Sprintf("put %s = %s: %v", key, value, err))
	}
}

// Values returns all keys, dotted, with their values.
func (k *Kernel) Values() map[string]string {
	defer k.lock()()
	all := map[string]string{}
	for name, value := range k.values {
		all[swap(name)] = value
	}
	return all
}

// Writes returns the writes so far, each "KEY = VALUE".
func (k *Kernel) Writes() []string {
	defer k.lock()()
	return slices.Clone(k.writes)
}

func slashes(key string) string {
	if i := strings.IndexAny(key, "./"); i >= 0 && key[i] == '.' {
		return swap(key)
	}
	return key
}

func swap(s string) string {
	return strings.NewReplacer(".", "/", "/", ".").Replace(s)
}

func pathError(op, name string, err syscall.Errno) error {
	return &fs.PathError{Op: op, Path: procSys + name, Err: err}
}
