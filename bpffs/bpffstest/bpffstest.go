// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bpffstest has a kernel to test against that needs neither root nor
// Linux. It stands in for the real one in bpffs.Mount and in cgroup.Mount.
//
// A [Kernel] keeps mounts as the kernel does: a stack for each path, identities
// that are never given twice, EINVAL, EBUSY, ENOENT, ENOTDIR, EPERM and ENODEV
// where the kernel answers so. Paths are real directories, such as
// testing.T.TempDir gives; what is mounted, pinned and held there is only in
// the Kernel. Files outside of its mounts are the real ones.
//
// It does not know symbolic links at the end of a path, mounts moved or bound
// by others, or more than one mount namespace. For those use the real kernel in
// a namespace of its own.
package bpffstest

import (
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

// Kernel is a node's kernel, just booted. It may be used by several goroutines
// at once; its fields may not be changed meanwhile.
type Kernel struct {
	// Old leaves it the old mount call only, as a seccomp profile may: what a
	// mount will be is not known before it is attached.
	Old bool

	// Denied takes the capability to mount away.
	Denied bool

	// Private makes the node's mounts those of a container: not shared.
	Private bool

	// Cgroup is the cgroup that the caller's cgroup namespace has as its root.
	// Zero: "/".
	Cgroup string

	mu     sync.Mutex
	mounts []*mount // oldest first
	last   int      // identity given last
}

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

// Put mounts a file system on path as an administrator or another program
// might have: also upon another one. Options are as for mount(8), with two
// more: "root=/DIR" mounts one directory of the file system, as a volume of a
// container is, and for cgroup2 that cgroup.
func (k *Kernel) Put(path, fstype, options string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	resolved, err := k.directory("mount", path)
	if err != nil {
		return err
	}
	return k.attach(k.make(fstype, options), resolved)
}

// Pin pins a map in the bpffs that path is in.
func (k *Kernel) Pin(path string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
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

// Hold uses the mount that path is in, as an open file does, until release.
func (k *Kernel) Hold(path string) (release func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
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

// Reboot starts the kernel anew: nothing is mounted.
func (k *Kernel) Reboot() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mounts = nil
}

// Mounts lists the types of the file systems mounted on path, the visible one
// last.
func (k *Kernel) Mounts(path string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
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

// Stat implements bpffs.Kernel and cgroup.Kernel.
func (k *Kernel) Stat(path string) (fstype, root, mount string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
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

// Mount implements bpffs.Kernel and cgroup.Kernel.
func (k *Kernel) Mount(path, fstype, options string, before func(root string) error) error {
	if !slices.Contains(filesystems, fstype) {
		return &fs.PathError{Op: "fsopen", Path: fstype, Err: syscall.ENODEV}
	}
	k.mu.Lock()
	m := k.make(fstype, options)
	k.mu.Unlock()
	root := ""
	if !k.Old && !k.Denied {
		root = m.top()
	}
	if err := before(root); err != nil {
		return err
	}
	if k.Denied {
		return &fs.PathError{Op: "mount", Path: path, Err: syscall.EPERM}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := k.directory("mount", path); err != nil {
		return err
	}
	if on := k.visible(path); on != nil && on.point == path && on.fstype == fstype {
		return &fs.PathError{Op: "mount", Path: path, Err: syscall.EBUSY}
	}
	return k.attach(m, path)
}

// Unmount implements bpffs.Kernel and cgroup.Kernel.
func (k *Kernel) Unmount(path string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	fail := func(err error) error { return &fs.PathError{Op: "umount", Path: path, Err: err} }
	if k.Denied {
		return fail(syscall.EPERM)
	}
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

// visible returns the mount that path is in, nil for the node's own file
// system: the newest, since each is attached to what is visible.
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

// top names the directory that m shows, as Stat does.
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
