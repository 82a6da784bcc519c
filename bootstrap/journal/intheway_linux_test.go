// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// An object that could not be restored is not recorded, so that it is not replaced.
func TestPLAN6_WhatCannotBeBroughtBackIsNotBegun(t *testing.T) {
	for what, put := range map[string]func(path string) error{
		"FIFO":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"socket": func(path string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err == nil {
				l.SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x")
			require.NoError(t, put(path))
			j, err := (&journal.Node{Dir: filepath.Join(dir, "state"), Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
			require.NoError(t, err)
			defer j.Close()
			ctx := journal.With(context.Background(), j.Step("step"))
			err = journal.Files{Kind: "acme"}.Begin(ctx, j, path, journal.State{Type: "file"})
			require.ErrorContains(t, err, "record "+path+": it is a "+what+", which could not be brought back: move it away")
			empty, err := j.Empty()
			require.NoError(t, err)
			require.True(t, empty)
		})
	}
}

// A run that failed half-way has begun an entry. If an administrator then restores the file,
// the uninstall restores the administrator's version.
func TestPLAN6_WhatCameAfterAFailureIsWhatWasBefore(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	write := func(content string) { require.NoError(t, os.WriteFile(path, []byte(content), 0o600)) }
	files := journal.Files{Kind: "acme"}
	j, err := (&journal.Node{Dir: filepath.Join(dir, "state"), Agent: "agent", NoOwner: true, Handlers: []journal.Handler{files}}).Open(context.Background(), nil)
	require.NoError(t, err)
	defer j.Close()
	ctx := journal.With(context.Background(), j.Step("step"))
	write("in the way")
	after, err := journal.Snapshot(ctx, path)
	require.NoError(t, err)
	sum := sha256.Sum256([]byte("ours"))
	after.Size, after.SHA256 = 4, hex.EncodeToString(sum[:])
	require.NoError(t, files.Begin(ctx, j, path, after))

	write("an administrator's")
	require.NoError(t, files.Begin(ctx, j, path, after))
	write("ours")
	require.NoError(t, files.Complete(ctx, j, path))
	require.NoError(t, j.Revert(ctx))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "an administrator's", string(content))
}
