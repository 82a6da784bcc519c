// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/testns"
)

// confine executes the program under the default seccomp profile, without new privileges, and
// with 64 descriptors.
func confine(program string, args []string) error {
	runtime.LockOSThread() // a filter belongs to the thread
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}); err != nil {
		return fmt.Errorf("setrlimit: %w", err)
	}
	if err := testns.Refuse(unix.EPERM, testns.RefusedByDefault()...); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return unix.Exec(program, append([]string{program}, args...), []string{"PATH=" + os.Getenv("PATH")})
}

// asAPod is a script that runs its remaining arguments with a read-only root, the node's /proc
// at $1, and three capabilities.
const asAPod = `
exec unshare --mount --propagation private sh -euc '
	mount --rbind /proc "$1"
	mount --make-private -o remount,bind,ro /
	if touch /tried 2> /dev/null; then exit 9; fi
	shift
	exec setpriv --bounding-set -all,+sys_admin,+sys_chroot,+sys_ptrace --inh-caps -all --no-new-privs -- "$@"
' "$@"
`

func TestSEC6_WithinALittleContainer(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	hostProc := n.work + "/hostproc"
	require.NoError(t, os.Mkdir(hostProc, 0o755))
	before := n.state()
	run := func(args ...string) outcome {
		t.Helper()
		var stdout, stderr bytes.Buffer
		cmd := n.Command("sh", append([]string{"-euc", asAPod, "pod", "pod", hostProc, os.Args[0], "--host-proc", hostProc}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), confined + "=" + binary}
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		return finish(t, cmd.Run, &stdout, &stderr)
	}
	apply := n.args("apply", "--output", "json", "--dest", n.work+"/config")
	for _, want := range []string{"changed", "unchanged"} {
		o := run(apply...)
		require.Zero(t, o.code, o.stderr)
		require.Equal(t, each(want, "cleanup"), o.report(t).statuses())
	}
	o := run(n.args("check", "--dest", n.work+"/config")...)
	require.Zero(t, o.code, o.stdout+o.stderr)
	o = run("uninstall")
	require.Zero(t, o.code, o.stderr)
	n.shell("rm -rf /run/mount") // mount(8)'s
	require.Empty(t, before.Diff(n.state()))
}
