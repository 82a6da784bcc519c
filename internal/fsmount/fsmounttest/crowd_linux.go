// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmounttest

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/testns"
)

// Crowd makes count mounts in a directory of the node's, on the real kernel.
func Crowd(t testing.TB, n Node, count int) {
	t.Helper()
	source := Mkdir(t, n, "source")
	for i := range count {
		point := filepath.Join(n.Dir(), "crowd", strconv.Itoa(i))
		if _, err := os.Lstat(point); err == nil {
			continue
		}
		require.NoError(t, unix.Mount(source, Mkdir(t, n, "crowd", strconv.Itoa(i)), "", unix.MS_BIND, ""))
	}
}

// TwoAtOnce calls ensure for the same new path twice at once, as two processes
// would, each on a thread of the test's mount namespace, and again for others. One of
// each two must mount, and the other find the mount.
func TwoAtOnce(t *testing.T, rounds int, ensure func(path string) error) {
	t.Helper()
	dir := NewReal(t, false).Dir()
	ns, err := os.Open("/proc/thread-self/ns/mnt")
	require.NoError(t, err)
	defer ns.Close()
	for round := range rounds {
		path := filepath.Join(dir, strconv.Itoa(round))
		start := make(chan struct{})
		errs := make(chan error)
		var ready sync.WaitGroup
		for range 2 {
			ready.Add(1)
			go func() {
				err := testns.Join(ns)
				ready.Done()
				<-start
				if err == nil {
					err = ensure(path)
				}
				errs <- err
			}()
		}
		ready.Wait()
		close(start)
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		infos, err := mountinfo.Read()
		require.NoError(t, err)
		require.Len(t, mountinfo.On(infos, path), 1)
	}
}
