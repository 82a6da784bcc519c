// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// What could not be brought back is not recorded, so that it is not replaced.
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
			j, err := journal.Open(filepath.Join(dir, "state"), journal.Options{})
			require.NoError(t, err)
			defer j.Close()
			ctx := j.WithStep(context.Background(), "step")
			err = journal.Files{Kind: "acme"}.Begin(ctx, j, path, journal.State{Type: "file"})
			require.ErrorContains(t, err, "record "+path+": it is a "+what+", which could not be brought back: move it away")
			empty, err := j.Empty()
			require.NoError(t, err)
			require.True(t, empty)
		})
	}
}
