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
type Node struct {
	machine
	K *bootstraptest.Kernel // the fake; nil on the real kernel
	// InCgroup calls f in a cgroup namespace whose root is the cgroup /NAME.
	InCgroup func(name string, f func())

	t   testing.TB
	dir string
}

// machine is what a bootstraptest.Kernel does too.
type machine interface {
	PutMount(path, fstype, options string) error
	Unmount(path string) error
	Pin(path string) error
	// Hold keeps the mount on path in use.
	Hold(path string) (release func())
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

// NewFake returns a Node whose kernel is a fake.
func NewFake(t testing.TB) Node {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	k := &bootstraptest.Kernel{}
	return Node{k, k, func(name string, f func()) {
		k.Cgroup, name = name, k.Cgroup
		f()
		k.Cgroup = name
	}, t, dir}
}

// Dir is the directory of the test, on the real kernel on a file system of its own.
func (n Node) Dir() string { return n.dir }

// Kernel is the kernel for the code under test: nil, the zero value of every type, means
// the real one.
func (n Node) Kernel() mount.Mounter {
	if n.K == nil {
		return nil
	}
	return n.K
}

// Put mounts on path, also on top of another mount. For cgroup2 the option root=/NAME
// mounts it with that cgroup as its root; for others root=/DIR mounts that directory
// of a new file system.
func (n Node) Put(path, fstype, options string) {
	n.t.Helper()
	require.NoError(n.t, n.PutMount(path, fstype, options))
}

// Unmount takes the topmost mount off path.
func (n Node) Unmount(path string) {
	n.t.Helper()
	require.NoError(n.t, n.machine.Unmount(path))
}

// Pin pins a map.
func (n Node) Pin(path string) {
	n.t.Helper()
	require.NoError(n.t, n.machine.Pin(path))
}

// Mkdir makes a directory in the node's own and returns its path.
func Mkdir(t testing.TB, n Node, elements ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{n.Dir()}, elements...)...)
	require.NoError(t, os.MkdirAll(path, 0o755))
	return path
}
