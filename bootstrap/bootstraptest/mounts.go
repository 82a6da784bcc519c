// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/slipway-dev/slipway/internal/durable"
)

type mount struct {
	id              int
	point           string
	fstype, options string
	source          string
	root            string // directory of the file system; for cgroup2 seen from the top
	pins            []string
	held            int
}

const (
	baseID  = 1 // of the node's own file system
	cgroup2 = "cgroup2"
	bpf     = "bpf"
)

// filesystems are those that the kernel has.
var filesystems = []string{bpf, cgroup2, "cgroup", "tmpfs", "sysfs", "proc"}

// PutMount mounts a file system on path as an administrator or another program might
// have, also on top of another one. Options are as for mount(8), with one more:
// "root=/DIR" mounts one directory of the file system, as a volume of a container is, and
// for cgroup2 that cgroup.
func (k *Kernel) PutMount(path, fstype, options string) error {
	defer k.lock()()
	resolved, err := directory(path)
	if err == nil {
		k.attach(fstype, resolved, fstype, options)
	}
	return err
}

// Pin pins a map in the bpffs that path is in.
func (k *Kernel) Pin(path string) error {
	defer k.lock()()
	m, pin := k.at(path)
	if m == nil || m.fstype != bpf || pin == "" {
		return &fs.PathError{Op: "bpf(BPF_OBJ_PIN)", Path: path, Err: syscall.EINVAL}
	}
	m.pins = append(m.pins, pin)
	return nil
}

// Hold uses the mount that path is in, as an open file does, until release.
func (k *Kernel) Hold(path string) (release func()) {
	defer k.lock()()
	m, _ := k.at(path)
	if m == nil {
		return func() {}
	}
	m.held++
	return sync.OnceFunc(func() {
		defer k.lock()()
		m.held--
	})
}

// Mounts lists the types of the file systems mounted on path, the visible one
// last.
func (k *Kernel) Mounts(path string) (types []string) {
	defer k.lock()()
	resolved, err := durable.Resolve(path)
	for _, m := range k.mounts {
		if err == nil && m.point == resolved {
			types = append(types, m.fstype)
		}
	}
	return types
}

// Stat implements mount.Mounter.
func (k *Kernel) Stat(path string) (fstype, root, mount string, err error) {
	if err := k.refused("statx", path); err != nil {
		return "", "", "", err
	}
	defer k.lock()()
	if _, err := os.Lstat(path); err != nil {
		return "", "", "", err
	}
	m := k.visible(path)
	switch {
	case m == nil:
		return "ext4", "", "", nil
	case m.point != path:
		return m.fstype, "", "", nil
	case m.fstype == cgroup2:
		root = k.shown(m)
	}
	return m.fstype, root, fmt.Sprintf("id=%d", m.id), nil
}

// Mount implements mount.Mounter.
func (k *Kernel) Mount(source, target, fstype, options string) error {
	if err := k.refused("mount", target); err != nil {
		return err
	}
	if !slices.Contains(filesystems, fstype) {
		return &fs.PathError{Op: "mount", Path: target, Err: syscall.ENODEV}
	}
	defer k.lock()()
	if _, err := directory(target); err != nil {
		return err
	}
	if on := k.visible(target); on != nil && on.point == target && on.fstype == fstype {
		return &fs.PathError{Op: "mount", Path: target, Err: syscall.EBUSY}
	}
	k.attach(source, target, fstype, options)
	return nil
}

// Unmount implements mount.Mounter.
func (k *Kernel) Unmount(target string) error {
	if err := k.refused("umount", target); err != nil {
		return err
	}
	defer k.lock()()
	m := k.visible(target)
	_, err := os.Lstat(target)
	switch {
	case err != nil:
		err = syscall.ENOENT
	case m == nil || m.point != target:
		err = syscall.EINVAL
	case m.held > 0 || slices.ContainsFunc(k.mounts, func(o *mount) bool { return o.id > m.id && below(o.point, target) }):
		err = syscall.EBUSY
	}
	if err != nil {
		return &fs.PathError{Op: "umount", Path: target, Err: err}
	}
	k.mounts = slices.DeleteFunc(k.mounts, func(o *mount) bool { return o == m })
	return nil
}

// attach makes a mount with an identity of its own.
func (k *Kernel) attach(source, point, fstype, options string) {
	k.last = max(k.last, baseID) + 1
	m := &mount{id: k.last, point: point, fstype: fstype, source: source, root: "/"}
	if fstype == cgroup2 {
		m.root = k.namespaceRoot()
	}
	var rest []string
	for o := range strings.SplitSeq(options, ",") {
		if dir, ok := strings.CutPrefix(o, "root="); ok {
			m.root = dir
			continue
		}
		rest = append(rest, o)
	}
	m.options = strings.Join(rest, ",")
	k.mounts = append(k.mounts, m)
}

func (k *Kernel) namespaceRoot() string { return cmp.Or(k.Cgroup, "/") }

// visible returns the mount that path is in, nil for the node's own file system: the
// newest, since each is attached to a visible one.
func (k *Kernel) visible(path string) *mount {
	for _, m := range slices.Backward(k.mounts) {
		if below(path, m.point) {
			return m
		}
	}
	return nil
}

// at returns the mount that any path leads into, and the rest of the path below its top.
func (k *Kernel) at(path string) (m *mount, below string) {
	resolved, err := durable.Resolve(path)
	if err != nil {
		return nil, ""
	}
	if m = k.visible(resolved); m != nil {
		below = relative(m.point, resolved)
	}
	return m, below
}

// directory resolves path and checks that it is one.
func directory(path string) (string, error) {
	resolved, err := durable.Resolve(path)
	if err != nil {
		return "", err
	}
	info, err := os.Lstat(resolved)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "mount", Path: path, Err: syscall.ENOTDIR}
	}
	return resolved, err
}

// relative is the rest of path below point.
func relative(point, path string) string {
	return strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(path, point)), "/")
}

func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}
