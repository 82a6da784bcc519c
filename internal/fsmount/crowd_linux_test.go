// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
)

// crowd makes count mounts in a directory of the node's, on the real kernel.
func crowd(t testing.TB, n fsmounttest.Node, count int) {
	t.Helper()
	source := fsmounttest.Mkdir(t, n, "source")
	for i := range count {
		point := filepath.Join(n.Dir(), "crowd", strconv.Itoa(i))
		if _, err := os.Lstat(point); err == nil {
			continue
		}
		require.NoError(t, unix.Mount(source, fsmounttest.Mkdir(t, n, "crowd", strconv.Itoa(i)), "", unix.MS_BIND, ""))
	}
}

// callAtOnce calls f with the path several times at once, as processes would, each on a thread
// of the test's mount namespace that ends afterwards, and returns the errors.
func callAtOnce(t testing.TB, callers int, path string, f func(path string) error) (errs []error) {
	t.Helper()
	ns, err := os.Open("/proc/thread-self/ns/mnt")
	require.NoError(t, err)
	defer ns.Close()
	var ready sync.WaitGroup
	ready.Add(callers)
	results := make(chan error)
	for range callers {
		go func() {
			err := join(ns)
			ready.Done()
			ready.Wait()
			if err == nil {
				err = f(path)
			}
			results <- err
		}()
	}
	for range callers {
		errs = append(errs, <-results)
	}
	return errs
}

// join moves the calling goroutine's thread, which ends with it, into a mount namespace.
func join(mounts *os.File) error {
	runtime.LockOSThread()
	return errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(int(mounts.Fd()), unix.CLONE_NEWNS))
}

// bytesRead counts the bytes that the calling thread reads from files while f runs.
func bytesRead(t testing.TB, f func()) int {
	t.Helper()
	count := func() (sum, own int) {
		raw, err := os.ReadFile("/proc/thread-self/io")
		require.NoError(t, err)
		_, err = fmt.Sscanf(string(raw), "rchar: %d", &sum)
		require.NoError(t, err)
		return sum, len(raw)
	}
	before, own := count()
	f()
	after, _ := count()
	return after - before - own
}
