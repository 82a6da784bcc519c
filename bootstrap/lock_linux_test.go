// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// shared is a node that several processes change.
type shared struct{ dir string }

func (s shared) state() string { return filepath.Join(s.dir, "state") }

func (s shared) file() bootstrap.Step { return wants("file", file{s.dir + "/file"}) }

// plan is the plan of one of the owner's processes.
func (s shared) plan(owner string, steps ...bootstrap.Step) *bootstrap.Plan {
	p := on(node(s.state(), owner), steps...)
	p.Host.LockTimeout = 0
	return p
}

func TestPLAN2_PLAN11_PLAN20_AnApplyWaitsWhileAnUninstallRuns(t *testing.T) {
	s := shared{t.TempDir()}
	_, err := s.plan("a", s.file()).Apply(t.Context())
	require.NoError(t, err)

	uninstalling, goOn := make(chan bool), make(chan bool)
	slow := &bootstraptest.Script{Hook: func(_ context.Context, call string) error {
		if call == "check-undo" {
			uninstalling <- true
			<-goOn
		}
		return nil
	}}
	uninstalled := make(chan error, 1)
	go func() {
		_, err := s.plan("a", s.file(), step("slow", slow)).Revert(t.Context())
		uninstalled <- err
	}()
	<-uninstalling
	waits, applied := make(chan string, 1), make(chan error, 1)
	second := s.plan("b", s.file())
	var log bytes.Buffer
	second.Trace = bootstrap.JoinTraces(bootstrap.LogTrace(slog.New(slog.NewTextHandler(&log, nil))),
		&bootstrap.Trace{Waiting: func(_ context.Context, _, what string, _ time.Duration) { waits <- what }})
	go func() {
		_, err := second.Apply(t.Context())
		applied <- err
	}()
	require.Contains(t, <-waits, `owner "a"`, "it says for whom")
	require.Equal(t, "a", ownerIn(t, s.state()), "and has claimed nothing")
	goOn <- true
	require.NoError(t, <-uninstalled)
	require.NoError(t, <-applied)
	require.Contains(t, log.String(), "level=WARN msg=waiting for=\"the lock ")
	require.Equal(t, "b", ownerIn(t, s.state()))
	require.FileExists(t, s.dir+"/file", "it noticed that it was uninstalled meanwhile")
}

// The node keeps the report of the last run that changed something or failed.
func TestPLAN18_TheLastRunIsKept(t *testing.T) {
	s := shared{t.TempDir()}
	last := func() bootstrap.Report { return *kept(t, s.state()) }
	fails := &bootstraptest.Script{}
	plan := s.plan("a", s.file(), step("fails", fails))
	plan.Version = "v1"
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)
	first := last()
	require.Equal(t, []any{"apply", "v1", "a", 1, 1}, []any{first.Op, first.Version, first.Owner, first.Generation, first.Count(bootstrap.Changed)})

	_, err = plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, last(), "nothing was done")

	fails.Errs = map[string][]error{"check": append(make([]error, len(fails.Calls())), errors.New("boom"))}
	_, err = plan.Apply(t.Context())
	require.Error(t, err)
	failed := last()
	require.True(t, failed.Failed())
	require.Equal(t, "plan.failed", codeOf(&failed))

	next := s.plan("b", step("fails", unreadable()))
	_, err = next.Apply(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, "b", last().Owner, "the next owner's failure")
	require.Equal(t, "a", ownerIn(t, s.state()), "which claims nothing")
	_, err = s.plan("b").Apply(t.Context())
	require.NoError(t, err)
	others := last()
	require.Equal(t, "b", others.Owner)
	_, err = plan.Apply(t.Context())
	require.ErrorIs(t, err, ledger.ErrNotOwner)
	require.Equal(t, others, last(), "a superseded owner leaves no report")

	next.Steps = append(next.Steps, bootstrap.Step{Name: "x", After: []string{"nowhere"}})
	next.Ledger.Kinds = []*ledger.Kind{ledger.File()}
	_, err = next.Uninstall(t.Context())
	require.NoError(t, err, "an uninstall depends on no step")
	require.NoDirExists(t, s.state(), "removed with the ledger")
}

// A report that is too large is kept without its changes and advice.
func TestPLAN18_AReportThatIsTooLargeIsKeptInShort(t *testing.T) {
	s, a := shared{t.TempDir()}, adviser{todo(), strings.Repeat("long", 100<<10), nil}
	report, err := s.plan("a", s.file(), step("a", a)).Apply(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, report.Results[1].Advice)
	last := kept(t, s.state())
	require.Equal(t, statuses(report), statuses(last))
	require.Empty(t, last.Results[1].Advice)
}

// A process that is not root has its lock beside its ledger.
func TestPLAN2_WithoutRootTheLockIsBesideTheLedger(t *testing.T) {
	dir, user := t.TempDir(), os.Geteuid()
	if user == 0 {
		user = 65534
		require.NoError(t, errors.Join(os.Chown(dir, user, user), os.Chmod(filepath.Dir(dir), 0o755)))
	}
	plan := on(node(dir+"/state", "pod"), wants("s", newShelf("shelf").want("a=1")))
	plan.Host.LockFile = ""
	applied := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock it: the thread ends as that user's
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(user), ^uintptr(0)); errno != 0 {
			applied <- errno
			return
		}
		_, err := plan.Apply(t.Context())
		applied <- err
	}()
	require.NoError(t, <-applied)
	require.FileExists(t, dir+"/state.lock")
}

// What the program alone can tell of an undoing, such as that an agent is alive, is asked with
// the node locked: before that, one may still start.
func TestPLAN14_WhetherAgentsHaveEndedIsAskedUnderTheLock(t *testing.T) {
	s := shared{t.TempDir()}
	p := s.plan("a", s.file())
	_, err := p.Apply(t.Context())
	require.NoError(t, err)
	alive := errors.New("it is alive")
	p.Ledger.MayUndo = func(context.Context) error {
		at, cancel := context.WithCancel(t.Context())
		at = bootstrap.WithTrace(at, &bootstrap.Trace{Waiting: func(context.Context, string, string, time.Duration) { cancel() }})
		_, err := p.Host.Lock(at, "")
		require.ErrorIs(t, err, context.Canceled, "it is held")
		return alive
	}
	_, err = p.Uninstall(t.Context())
	require.ErrorIs(t, err, alive)
	p.Ledger.AnyOwner = true
	_, err = p.Revert(t.Context())
	require.ErrorIs(t, err, alive)
	require.FileExists(t, s.dir+"/file")
}
