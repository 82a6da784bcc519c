// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"io/fs"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

// hooked is a set of plugins that signals when one of them that was read is closed.
type hooked struct {
	fs.FS
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
	return f.File.Read(p)
}

func (f *hookedFile) Close() error {
	if f.isRead {
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
