// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testns"
)

const helperEnv = "SLIPWAY_HOSTNS_TEST_HELPER"

var everyNamespace = []string{"mnt", "cgroup", "net", "uts", "ipc"}

// TestMain plays the helper programs that some tests start.
func TestMain(m *testing.M) {
	switch os.Getenv(helperEnv) {
	case "main-thread":
		fmt.Println(fromMainThread(os.Args[1]))
	case "do":
		err := hostns.Do(context.Background(), os.Args[1], os.Args[2:], func(context.Context) error { return nil })
		fmt.Println(err)
		if denied := code.Of(err) == "host.entry-denied"; denied != errors.Is(err, fs.ErrPermission) {
			fmt.Println("its code is", code.Of(err))
		}
	case "check":
		fmt.Println(hostns.Host{Proc: os.Args[1]}.Check())
	default:
		os.Exit(m.Run())
	}
}

// helper runs this test binary as the helper program mode, without the given
// capabilities, and returns the line that it prints.
func helper(t *testing.T, mode string, without []uintptr, args ...string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), helperEnv+"="+mode, "GOMAXPROCS=1")
	cmd.Stderr = t.Output()
	var out []byte
	var err error
	done := make(chan struct{})
	go func() { // on a thread that dies with it: the bounding set cannot be widened again
		defer close(done)
		runtime.LockOSThread()
		for _, c := range without {
			if err = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
				return
			}
		}
		out, err = cmd.Output()
	}()
	<-done
	require.NoError(t, err)
	return string(out)
}

// foreign starts a program in namespaces of its own and returns its directory
// in /proc. It ends with the test.
func foreign(t testing.TB) string {
	t.Helper()
	return testns.Process(t, testns.Mount|testns.Cgroup|testns.Net|testns.UTS|testns.IPC, "")
}

// namespaceOf returns an identity such as "mnt:[4026531841]".
func namespaceOf(t testing.TB, procDir, file string) string {
	t.Helper()
	link, err := os.Readlink(filepath.Join(procDir, "ns", file))
	require.NoError(t, err)
	return link
}
