// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ReadFile prints a value with a line break.
func (k *Kernel) ReadFile(name string) ([]byte, error) {
	value, err := k.value("read", name)
	if err != nil {
		return nil, err
	}
	return []byte(value + "\n"), nil
}

func (k *Kernel) value(op, name string) (string, error) {
	if err := k.refused(op, procSys+name); err != nil {
		return "", err
	}
	defer k.lock()()
	value, ok := k.values[name]
	switch {
	case ok:
		return value, nil
	case len(k.list(name)) > 0:
		return "", pathError(op, name, syscall.EISDIR)
	}
	return "", pathError(op, name, syscall.ENOENT)
}

// ReadDir lists a directory.
func (k *Kernel) ReadDir(name string) ([]string, error) {
	if err := k.refused("readdir", procSys+name); err != nil {
		return nil, err
	}
	defer k.lock()()
	if _, isFile := k.values[name]; isFile {
		return nil, pathError("readdir", name, syscall.ENOTDIR)
	}
	names := k.list(name)
	if len(names) == 0 {
		return nil, pathError("readdir", name, syscall.ENOENT)
	}
	return names, nil
}

// Writable reports whether WriteFile can open the file.
func (k *Kernel) Writable(name string) error {
	_, err := k.value("open", name)
	return err
}

// WriteFile sets a value as the kernel would.
func (k *Kernel) WriteFile(name string, value []byte) error {
	if err := k.Writable(name); err != nil {
		return err
	}
	text := strings.TrimSpace(string(value))
	k.note(name, text)
	if err := k.refused("write", procSys+name); err != nil {
		return err
	}
	defer k.lock()()
	if k.deaf[name] {
		return nil
	}
	return k.set(name, text)
}

func (k *Kernel) note(name, text string) {
	defer k.lock()()
	k.writes = append(k.writes, fmt.Sprintf("%s = %s", swap(name), text))
}

// Routers lists the links with a learnt default route.
func (k *Kernel) Routers() ([]string, error) {
	if err := k.refused("read", "/proc/net/ipv6_route"); err != nil {
		return nil, err
	}
	defer k.lock()()
	return slices.Clone(k.routers), nil
}

func (k *Kernel) list(dir string) []string {
	prefix := strings.TrimPrefix(dir+"/", "./")
	var names []string
	for name := range k.values {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			first, _, _ := strings.Cut(rest, "/")
			names = append(names, first)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (k *Kernel) set(name, value string) error {
	old := k.values[name]
	fields := strings.Fields(value)
	for i, field := range fields {
		n, err := strconv.ParseInt(field, 0, 64)
		if isNumber(old) && err != nil {
			return pathError("write", name, syscall.EINVAL)
		}
		if isNumber(old) {
			fields[i] = strconv.FormatInt(n, 10)
		}
	}
	if name == "kernel/unprivileged_bpf_disabled" && old == "1" && value != "1" {
		return pathError("write", name, syscall.EPERM)
	}
	if len(fields) == 0 && isNumber(old) {
		return pathError("write", name, syscall.EINVAL)
	}
	k.values[name] = strings.Join(fields, "\t")
	if k.values[name] != old {
		k.follow(name, k.values[name])
	}
	return nil
}

func isNumber(value string) bool {
	fields := strings.Fields(value)
	for _, field := range fields {
		if _, err := strconv.ParseInt(field, 10, 64); err != nil {
			return false
		}
	}
	return len(fields) > 0
}

// follow makes the further changes that the kernel makes along with a value, as measured
// on Linux 6.18 in a new network namespace.
func (k *Kernel) follow(name, value string) {
	switch dir, file := path.Split(name); {
	case name == "net/ipv4/ip_forward" || name == "net/ipv4/conf/all/forwarding":
		k.values["net/ipv4/ip_forward"] = value
		k.everywhere("net/ipv4/conf", "forwarding", value)
		k.values["net/ipv4/conf/all/accept_redirects"] = map[bool]string{true: "1", false: "0"}[value == "0"]
	case name == "net/ipv6/conf/all/forwarding":
		k.everywhere("net/ipv6/conf", "forwarding", value)
		k.purgeRouters(value)
	case name == "net/ipv6/conf/all/disable_ipv6":
		k.everywhere("net/ipv6/conf", file, value)
	case strings.HasPrefix(dir, "net/ipv6/conf/") && file == "forwarding" && dir != "net/ipv6/conf/default/":
		k.purgeRouters(value)
	}
}

func (k *Kernel) everywhere(dir, file, value string) {
	for _, link := range k.list(dir) {
		k.values[path.Join(dir, link, file)] = value
	}
}

func (k *Kernel) purgeRouters(forwarding string) {
	if forwarding == "0" {
		return
	}
	k.routers = slices.DeleteFunc(k.routers, func(link string) bool {
		return k.values[path.Join("net/ipv6/conf", link, "accept_ra")] != "2"
	})
}
