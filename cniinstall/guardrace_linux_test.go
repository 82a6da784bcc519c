// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"io/fs"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cniinstall"
)

// hooked is a set of plugins that signals when one of them is opened and when it is closed.
type hooked struct {
	fs.FS
	read  func() error
	close func()
}

func (h hooked) Open(name string) (fs.File, error) {
	f, err := h.FS.Open(name)
	if _, dir := f.(fs.ReadDirFile); err != nil || dir {
		return f, err
	}
	return &hookedFile{File: f, hooked: h}, nil
}

type hookedFile struct {
	fs.File
	hooked hooked
	isRead bool
}

func (f *hookedFile) Read(p []byte) (int, error) {
	f.isRead = true
	if f.hooked.read != nil {
		if err := f.hooked.read(); err != nil {
			return 0, err
		}
	}
	return f.File.Read(p)
}

func (f *hookedFile) Close() error {
	if f.isRead && f.hooked.close != nil {
		f.hooked.close()
	}
	return f.File.Close()
}

// An uninstall that starts and finishes while the guard compares without the lock ends the
// guard: files that were equal a moment ago are not mistaken for files that were never
// recorded.
func TestCNI7_UninstalledWhileItCompares(t *testing.T) {
	ownTime(t, func(t *testing.T) {
		n := newNode(t)
		i := n.onePlugin()
		require.NoError(t, i.Apply(t.Context()))
		var once atomic.Bool
		guarded := i
		guarded.Book = n.book(cniinstall.Uninstall{}) // another process's
		guarded.Plugins = hooked{FS: i.Plugins, close: func() {
			if once.CompareAndSwap(false, true) {
				unlock, err := n.lock(context.Background())
				require.NoError(t, err)
				require.NoError(t, i.Revert(context.Background()))
				require.NoError(t, unlock())
			}
		}}
		g := start(t, guarded, cniinstall.Guard{Lock: n.lock}, plainly)
		require.ErrorIs(t, g.end(), cniinstall.ErrUninstalled)
		require.True(t, once.Load())
		require.Empty(t, g.repaired)
		require.NoFileExists(t, n.plugin("acme-cni"))
		require.NoDirExists(t, n.state)
	})
}

// A failed repair forgets none of its files: it is retried, and an uninstall knows of them.
func TestCNI7_FailedRepairForgetsNothing(t *testing.T) {
	ownTime(t, func(t *testing.T) {
		n := newNode(t)
		i := n.onePlugin()
		require.NoError(t, i.Apply(t.Context()))
		var broken atomic.Bool
		guarded := i
		guarded.Plugins = hooked{FS: i.Plugins, read: func() error {
			if broken.Load() {
				return unix.EIO
			}
			return nil
		}}
		g := start(t, guarded, cniinstall.Guard{Lock: n.lock}, plainly)
		require.NoError(t, os.Remove(n.plugin("acme-cni")))
		g.repair()
		broken.Store(true)
		require.NoError(t, os.Remove(n.plugin("acme-cni")))
		err := receive(t, g.trouble)
		require.ErrorIs(t, err, unix.EIO)
		require.ErrorContains(t, err, "write file "+n.plugin("acme-cni"))
		broken.Store(false)
		receive(t, g.repaired)
		require.Empty(t, g.ended)
		g.cancel() // otherwise it would repair the reverted files
		_ = g.end()
		require.NoError(t, i.Revert(t.Context()))
		require.NoFileExists(t, n.plugin("acme-cni"))
	})
}
