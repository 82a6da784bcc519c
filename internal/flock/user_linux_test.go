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
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/flock"
	"github.com/slipway-dev/slipway/internal/testns"
)

// asUser is the environment variable that makes this test binary the other user.
const asUser = "SLIPWAY_FLOCK_TEST_USER_DIR"

// A user that is not root cannot make the node's lock; beside a journal of its own
// it can, and two of its runs exclude each other.
func TestPLAN2_AUserThatIsNotRootLocksBesideItsJournal(t *testing.T) {
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
	info, err := os.Stat(filepath.Join(dir, "slipway.lock"))
	require.NoError(t, err)
	require.EqualValues(t, uid, info.Sys().(*syscall.Stat_t).Uid)
}

func runAsUser(t *testing.T, dir string) {
	require.NotZero(t, os.Geteuid())
	files := journal.Files{Kind: "acme"}
	made := filepath.Join(dir, "made")
	lock := flock.File{Path: filepath.Join(dir, "slipway.lock"), Timeout: time.Nanosecond}
	action := bootstrap.Func(
		func(context.Context) ([]string, error) {
			if _, err := os.Stat(made); err == nil {
				return nil, nil
			}
			return []string{"make " + made}, nil
		},
		func(ctx context.Context) error {
			_, err := lock.Lock(ctx)
			require.ErrorAs(t, err, new(*flock.HeldError), "another run, while this one has it")
			return files.MkdirAll(ctx, journal.From(ctx), made, 0o755)
		},
	).In(files.Namespaces()...).Recording(files.Kinds()...)
	plan := bootstrap.Plan{
		Host:    hostns.Host{}, // with the node's lock
		Journal: &journal.Node{Dir: filepath.Join(dir, "journal"), Agent: "agent", Owner: "me", Handlers: []journal.Handler{files}},
		Steps:   []bootstrap.Step{{Name: "directory", Action: action}},
	}
	_, err := plan.Apply(t.Context())
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorContains(t, err, flock.DefaultPath)
	require.ErrorContains(t, err, "sets LockFile to another file")
	require.NoDirExists(t, made, "nothing without the lock")

	plan.Host = hostns.Host{LockFile: lock.Path}
	_, err = plan.Apply(t.Context())
	require.NoError(t, err)
	require.DirExists(t, made)
	_, err = plan.Revert(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, made)
}
