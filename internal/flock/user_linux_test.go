// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package flock_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/flock"
	"github.com/slipway-dev/slipway/internal/testns"
)

// asUser is the environment variable that makes this test binary the other user.
const asUser = "SLIPWAY_FLOCK_TEST_USER_DIR"

// A user that is not root cannot make the node's lock. It takes one beside a ledger of its own,
// and two of its runs exclude each other.
func TestPLAN2_AUserThatIsNotRootLocksBesideItsLedger(t *testing.T) {
	if dir := os.Getenv(asUser); dir != "" {
		runAsUser(t, dir)
		return
	}
	testns.Enter(t, testns.Mount)
	const uid = 65534
	require.NoError(t, unix.Mount("run", "/run", "tmpfs", 0, "mode=0755"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount("/run", unix.MNT_DETACH)) })
	dir := "/run/user"
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Chown(dir, uid, uid))

	child := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), asUser+"="+dir)
	child.Dir = dir
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := child.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: "+t.Name(), "it ran")

	require.NoFileExists(t, flock.DefaultPath)
	info, err := os.Stat(filepath.Join(dir, "state.lock"))
	require.NoError(t, err)
	require.EqualValues(t, uid, info.Sys().(*syscall.Stat_t).Uid)
}

func runAsUser(t *testing.T, dir string) {
	require.NotZero(t, os.Geteuid())
	made := filepath.Join(dir, "made")
	lock := flock.File{Path: filepath.Join(dir, "state.lock"), Timeout: time.Nanosecond}
	kind := ledger.Dir()
	write := kind.Write
	kind.Write = func(ctx context.Context, object string, to ledger.State) error {
		_, err := lock.Lock(ctx)
		require.ErrorAs(t, err, new(*flock.HeldError), "another run, while this one has it")
		return write(ctx, object, to)
	}
	plan := bootstrap.Plan{
		Host:   hostns.Host{Here: true},
		Ledger: &ledger.Ledger{Dir: filepath.Join(dir, "state"), Agent: "agent", Owner: "me"},
		Steps: []bootstrap.Step{{Name: "directory", Wants: wanted{
			{Kind: kind, Object: made, To: ledger.State{Type: "dir", Mode: 0o755, UID: os.Geteuid(), GID: os.Getegid()}}}}},
	}
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)
	require.DirExists(t, made)
	_, err = plan.Revert(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, made)
}

// wanted wants a list of objects.
type wanted []ledger.Want

func (w wanted) Wants(context.Context) (ledger.Wants, error) { return ledger.Wants{List: w}, nil }
