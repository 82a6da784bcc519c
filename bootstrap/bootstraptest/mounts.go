// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/slipway-dev/slipway/internal/fsmount"
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
	baseID   = 1 // of the node's own file system
	cgroup2  = "cgroup2"
	bpf      = "bpf"
	cgroupFS = 30 // device number: all cgroup2 mounts show one file system
)

// filesystems are those that the kernel has.
var filesystems = []string{bpf, cgroup2, "cgroup", "tmpfs", "sysfs", "proc"}

// PutMount mounts a file system on path as an administrator or another program might
// have, also on top of another one. Options are as for mount(8), with two more:
// "root=/DIR" mounts one directory of the file system, as a volume of a container is, and
// for cgroup2 that cgroup.
func (k *Kernel) PutMount(path, fstype, options string) error {
	defer k.lock()()
	resolved, err := k.directory("mount", path)
	if err != nil {
		return err
	}
	return k.attach(k.make(fstype, options), resolved)
}

// Pin pins a map in the bpffs that path is in.
func (k *Kernel) Pin(path string) error {
	defer k.lock()()
	resolved, err := fsmount.Resolve(path)
	if err != nil {
		return err
	}
	m := k.visible(resolved)
	if m == nil || m.fstype != bpf || m.point == resolved {
		return &fs.PathError{Op: "bpf(BPF_OBJ_PIN)", Path: path, Err: syscall.EINVAL}
	}
	m.pins = append(m.pins, relative(m.point, resolved))
	return nil
}

// Unpin removes the pin at path.
func (k *Kernel) Unpin(path string) error {
	defer k.lock()()
	resolved, err := fsmount.Resolve(path)
	if err != nil {
		return err
	}
	m := k.visible(resolved)
	if m == nil || !slices.Contains(m.pins, relative(m.point, resolved)) {
		return &fs.PathError{Op: "unlink", Path: path, Err: syscall.ENOENT}
	}
	pin := relative(m.point, resolved)
	m.pins = slices.DeleteFunc(m.pins, func(p string) bool { return p == pin })
	return nil
}

// Pins lists the pins in the bpffs mounted on path, by their paths below it, sorted.
func (k *Kernel) Pins(path string) []string {
	defer k.lock()()
	resolved, err := fsmount.Resolve(path)
	if err != nil {
		return nil
	}
	if m := k.visible(resolved); m != nil && m.point == resolved {
		return slices.Sorted(slices.Values(m.pins))
	}
	return nil
}

// Hold uses the mount that path is in, as an open file does, until release.
func (k *Kernel) Hold(path string) (release func()) {
	defer k.lock()()
	resolved, err := fsmount.Resolve(path)
	if err != nil {
		return func() {}
	}
	m := k.visible(resolved)
	if m == nil {
		return func() {}
	}
	m.held++
	return sync.OnceFunc(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		m.held--
	})
}

// Mounts lists the types of the file systems mounted on path, the visible one
// last.
func (k *Kernel) Mounts(path string) []string {
	defer k.lock()()
	resolved, err := fsmount.Resolve(path)
	if err != nil {
		return nil
	}
	var types []string
	for _, m := range k.mounts {
		if m.point == resolved {
			types = append(types, m.fstype)
		}
	}
	return types
}

// Stat implements bpffs.Mounter and cgroup.Mounter.
func (k *Kernel) Stat(path string) (fstype, root, mount string, err error) {
	if err := k.refused("statx", path); err != nil {
		return "", "", "", err
	}
	defer k.lock()()
	if _, err := os.Lstat(path); err != nil {
		return "", "", "", err
	}
	m := k.visible(path)
	if m == nil {
		return "ext4", "8:1" + filepath.ToSlash(path), "", nil
	}
	if m.point == path {
		mount = m.identity()
	}
	return m.fstype, m.top() + relative(m.point, path), mount, nil
}

// Mount implements bpffs.Mounter and cgroup.Mounter.
func (k *Kernel) Mount(path, fstype, options string, before func(root string) error) error {
	if !slices.Contains(filesystems, fstype) {
		return &fs.PathError{Op: "fsopen", Path: fstype, Err: syscall.ENODEV}
	}
	err := k.refused("fsopen", fstype)
	old := errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS)
	if err != nil && !old {
		return err
	}
	m, root := k.detached(fstype, options)
	if old {
		root = ""
	}
	if err := before(root); err != nil {
		return err
	}
	if err := k.refused("mount", path); err != nil {
		return err
	}
	defer k.lock()()
	if _, err := k.directory("mount", path); err != nil {
		return err
	}
	if on := k.visible(path); on != nil && on.point == path && on.fstype == fstype {
		return &fs.PathError{Op: "mount", Path: path, Err: syscall.EBUSY}
	}
	return k.attach(m, path)
}

// Unmount implements bpffs.Mounter and cgroup.Mounter.
func (k *Kernel) Unmount(path string) error {
	if err := k.refused("umount", path); err != nil {
		return err
	}
	defer k.lock()()
	fail := func(err error) error { return &fs.PathError{Op: "umount", Path: path, Err: err} }
	if _, err := os.Lstat(path); err != nil {
		return fail(syscall.ENOENT)
	}
	m := k.visible(path)
	if m == nil || m.point != path {
		return fail(syscall.EINVAL)
	}
	if m.held > 0 || slices.ContainsFunc(k.mounts, func(o *mount) bool { return o.id > m.id && o.point != path && below(o.point, path) }) {
		return fail(syscall.EBUSY)
	}
	k.mounts = slices.DeleteFunc(k.mounts, func(o *mount) bool { return o == m })
	return nil
}

// detached makes a detached mount, and identifies its top directory.
func (k *Kernel) detached(fstype, options string) (m *mount, root string) {
	defer k.lock()()
	m = k.make(fstype, options)
	return m, m.top()
}

// make gives a new mount its identity.
func (k *Kernel) make(fstype, options string) *mount {
	k.last = max(k.last, baseID) + 1
	m := &mount{id: k.last, fstype: fstype, source: fstype, root: "/"}
	if fstype == cgroup2 {
		m.root = k.namespaceRoot()
	}
	var rest []string
	for o := range strings.SplitSeq(options, ",") {
		if dir, ok := strings.CutPrefix(o, "root="); ok {
			m.root = dir
			continue
		}
		if source, ok := strings.CutPrefix(o, "source="); ok {
			m.source = source
			continue
		}
		rest = append(rest, o)
	}
	m.options = strings.Join(rest, ",")
	return m
}

func (k *Kernel) attach(m *mount, point string) error {
	m.point = point
	k.mounts = append(k.mounts, m)
	return nil
}

func (k *Kernel) namespaceRoot() string {
	if k.Cgroup == "" {
		return "/"
	}
	return k.Cgroup
}

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

// directory resolves path and checks that it is one.
func (k *Kernel) directory(op, path string) (string, error) {
	resolved, err := fsmount.Resolve(path)
	if err != nil {
		return "", err
	}
	info, err := os.Lstat(resolved)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", &fs.PathError{Op: op, Path: path, Err: syscall.ENOTDIR}
	}
	return resolved, nil
}

// top identifies the directory that m shows, as Stat does.
func (m *mount) top() string {
	if m.fstype == cgroup2 {
		return fmt.Sprintf("0:%d%s:", cgroupFS, m.root)
	}
	return fmt.Sprintf("0:%d%s:", 100+m.id, m.root)
}

func (m *mount) identity() string { return fmt.Sprintf("id=%d", m.id) }

// relative is the rest of path below point.
func relative(point, path string) string {
	return strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(path, point)), "/")
}

func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}
