// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package sysctltest is a kernel's values in memory, for tests of what uses
// package sysctl: no root, no Linux.
//
// It does what the kernel does where that makes a difference: prints tabs for
// blanks, refuses what is not a number, rewrites every link's forwarding when
// the global one changes, drops learnt IPv6 default routes, makes and removes
// the keys of links, and never takes back kernel.unprivileged_bpf_disabled = 1.
// Faults can be set key by key. It knows no capabilities and no file modes.
package sysctltest

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/slipway-dev/slipway/sysctl"
)

// Kernel is a fake kernel. It may be used by several goroutines.
type Kernel struct {
	mu       sync.Mutex
	values   map[string]string
	faults   map[string]error
	deaf     map[string]bool
	routers  []string
	writes   []string
	readOnly bool
	boots    int
}

// New makes a kernel as after boot, with the links lo and those given. The
// values are a few of a real kernel's, with its defaults.
func New(links ...string) *Kernel {
	k := &Kernel{faults: map[string]error{}, deaf: map[string]bool{}}
	k.boot(append([]string{"lo"}, links...))
	return k
}

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
	for _, link := range append([]string{"all", "default"}, links...) {
		k.addConf(link, map[string]string{"accept_redirects": "1", "forwarding": "0", "rp_filter": "0", "send_redirects": "1"},
			map[string]string{"accept_ra": "1", "accept_redirects": "1", "disable_ipv6": "0", "forwarding": "0"})
	}
	k.routers = nil
}

func (k *Kernel) addConf(link string, v4, v6 map[string]string) {
	for name, value := range v4 {
		k.values[path.Join("net/ipv4/conf", link, name)] = value
	}
	for name, value := range v6 {
		k.values[path.Join("net/ipv6/conf", link, name)] = value
	}
}

// Kernel is k as package sysctl takes it.
func (k *Kernel) Kernel() sysctl.Kernel { return sysctl.Kernel{Files: k} }

// AddLink adds a link, which gets its values from conf/default.
func (k *Kernel) AddLink(link string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.addConf(link, k.below("net/ipv4/conf/default/"), k.below("net/ipv6/conf/default/"))
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
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.values, func(name, _ string) bool {
		return strings.HasPrefix(name, "net/ipv4/conf/"+link+"/") || strings.HasPrefix(name, "net/ipv6/conf/"+link+"/")
	})
	k.routers = slices.DeleteFunc(k.routers, func(r string) bool { return r == link })
}

// LearnRouter gives link an IPv6 default route from router advertisements.
func (k *Kernel) LearnRouter(link string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.routers = append(k.routers, link)
}

// Reboot takes every value back to its default and changes the boot id. Links
// stay.
func (k *Kernel) Reboot() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.boot(slices.DeleteFunc(k.list("net/ipv4/conf"), func(l string) bool { return l == "all" || l == "default" }))
}

// SetReadOnly makes every write fail with EROFS, as in an unprivileged
// container, or stops that.
func (k *Kernel) SetReadOnly(readOnly bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.readOnly = readOnly
}

// Fail makes writes to key fail with err; nil stops that.
func (k *Kernel) Fail(key string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults[slashes(key)] = err
}

// Deafen makes writes to key succeed and change nothing, as some security
// modules do.
func (k *Kernel) Deafen(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deaf[slashes(key)] = true
}

// Put makes or changes a key as if somebody else had, with the kernel's rules
// for one that exists. It panics if the kernel would refuse.
func (k *Kernel) Put(key, value string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	name := slashes(key)
	if _, exists := k.values[name]; !exists {
		k.values[name] = value
		return
	}
	if err := k.set(name, value); err != nil {
		panic(fmt.Sprintf("sysctltest: put %s = %s: %v", key, value, err))
	}
}

// Values are all keys, dotted, with their values.
func (k *Kernel) Values() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[string]string{}
	for name, value := range k.values {
		all[swap(name)] = value
	}
	return all
}

// Writes are the writes so far, each "KEY = VALUE".
func (k *Kernel) Writes() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
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
	return &fs.PathError{Op: op, Path: "/proc/sys/" + name, Err: err}
}
