// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package fsmounttest runs one test on a fake kernel and on the real one, in a
// throw-away mount namespace.
package fsmounttest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/mount"
)

// Node is a machine to mount on. Its methods act as other programs on that machine would.
type Node interface {
	// Dir is the directory of the test, on the real kernel on a file system of its own.
	Dir() string
	// Kernel is the kernel for the code under test.
	Kernel() mount.Mounter
	// Put mounts on path, also on top of another mount. For cgroup2 the option root=/NAME
	// mounts it with that cgroup as its root; for others root=/DIR mounts that directory
	// of a new file system.
	Put(path, fstype, options string)
	// Unmount takes the topmost mount off path.
	Unmount(path string)
	// Pin pins a map.
	Pin(path string)
	// Hold keeps the mount on path in use.
	Hold(path string) (release func())
	// InCgroup calls f in a cgroup namespace whose root is the cgroup /NAME.
	InCgroup(name string, f func())
	// Mounts lists the types of the mounts on path, the visible one last.
	Mounts(path string) []string
}

// OnEach runs test as a subtest for each kernel: the fake, the running one, and that with
// the old mount call only.
func OnEach(t *testing.T, test func(t *testing.T, n Node)) {
	t.Helper()
	t.Run("fake", func(t *testing.T) { test(t, NewFake(t)) })
	t.Run("kernel", func(t *testing.T) { test(t, NewReal(t, false)) })
	t.Run("kernel old", func(t *testing.T) { test(t, NewReal(t, true)) })
}

// Fake is a Node whose kernel is a fake.
type Fake struct {
	K   *bootstraptest.Kernel
	t   testing.TB
	dir string
}

// NewFake returns one.
func NewFake(t testing.TB) *Fake {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return &Fake{K: &bootstraptest.Kernel{}, t: t, dir: dir}
}

// Dir implements Node.
func (n *Fake) Dir() string { return n.dir }

// Kernel implements Node.
func (n *Fake) Kernel() mount.Mounter { return n.K }

// Put implements Node.
func (n *Fake) Put(path, fstype, options string) {
	n.t.Helper()
	require.NoError(n.t, n.K.PutMount(path, fstype, options))
}

// Unmount implements Node.
func (n *Fake) Unmount(path string) {
	n.t.Helper()
	require.NoError(n.t, n.K.Unmount(path))
}

// Pin implements Node.
func (n *Fake) Pin(path string) {
	n.t.Helper()
	require.NoError(n.t, n.K.Pin(path))
}

// Hold implements Node.
func (n *Fake) Hold(path string) (release func()) { return n.K.Hold(path) }

// InCgroup implements Node.
func (n *Fake) InCgroup(name string, f func()) {
	was := n.K.Cgroup
	n.K.Cgroup = name
	f()
	n.K.Cgroup = was
}

// Mounts implements Node.
func (n *Fake) Mounts(path string) []string { return n.K.Mounts(path) }

// Mkdir makes a directory in the node's own and returns its path.
func Mkdir(t testing.TB, n Node, elements ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{n.Dir()}, elements...)...)
	require.NoError(t, os.MkdirAll(path, 0o755))
	return path
}
