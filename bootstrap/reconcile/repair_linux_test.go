// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
	"github.com/slipway-dev/slipway/internal/testns"
)

const content = "as wanted"

// tree wants files with that content, and the directories above them.
type tree struct {
	paths []string
	watch []string
	err   func() error // of Wants
	calls atomic.Int32
}

func (f *tree) Wants(context.Context) (wants ledger.Wants, err error) {
	f.calls.Add(1)
	wants.Watch = f.watch
	if f.err != nil {
		err = f.err()
	}
	for _, path := range f.paths {
		dirs, errDirs := ledger.DirWants(filepath.Dir(path), 0o755)
		for _, w := range append(dirs, ledger.FileWant(path, 0o640, []byte(content))) {
			if !slices.ContainsFunc(wants.List, func(listed ledger.Want) bool { return listed.ID() == w.ID() }) {
				wants.List = append(wants.List, w)
			}
		}
		err = errors.Join(err, errDirs)
	}
	return wants, err
}

// outcome is what Done is called with.
type outcome struct {
	report *bootstrap.Report
	err    error
}

// node is a temporary directory with a plan, whose step wants a file, and a loop.
type node struct {
	t         *testing.T
	dir, file string
	wants     *tree
	plan      *bootstrap.Plan
	trigger   chan struct{}
	outcomes  chan outcome
	ended     chan error
}

func newNode(t *testing.T) *node {
	dir := t.TempDir()
	n := &node{t: t, dir: dir, file: filepath.Join(dir, "a/b/file"),
		trigger: make(chan struct{}, 1), outcomes: make(chan outcome, 1000), ended: make(chan error, 1)}
	n.wants = &tree{paths: []string{n.file}}
	n.plan = n.planOf("pod")
	return n
}

func (n *node) planOf(owner string) *bootstrap.Plan {
	return &bootstrap.Plan{
		Host: here(n.dir), Ledger: remembers(n.dir, owner), Gates: []bootstrap.Step{{Name: "gate", Gate: &bootstraptest.Script{}}},
		Steps: []bootstrap.Step{{Name: "files", After: []string{"gate"}, Wants: n.wants}},
	}
}

// run runs the loop until the test ends, and waits until it has applied.
func (n *node) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		loop := reconcile.Loop{Plan: n.plan, Interval: 24 * time.Hour, Trigger: n.trigger, Done: func(r *bootstrap.Report, err error) { n.outcomes <- outcome{r, err} }}
		n.ended <- loop.Run(ctx)
	}()
	n.t.Cleanup(func() { cancel(); <-done })
}

func (n *node) runs() {
	n.t.Helper()
	n.run(n.t.Context())
	require.NoError(n.t, n.next().err)
	time.Sleep(time.Minute) // all is seen as it is
}

// next returns what is reported next.
func (n *node) next() outcome {
	n.t.Helper()
	select {
	case got := <-n.outcomes:
		return got
	case <-time.After(time.Hour):
		require.Fail(n.t, "nothing happens")
	}
	return outcome{}
}

// repairs breaks something, and returns how long the repair takes.
func (n *node) repairs(what string, damage func()) time.Duration {
	n.t.Helper()
	begin := time.Now()
	damage()
	got := n.next()
	require.NoError(n.t, got.err, what)
	require.Equal(n.t, bootstrap.Changed, got.report.Results[0].Status, what)
	n.requireWell(what)
	return time.Since(begin)
}

func (n *node) requireWell(what string) {
	n.t.Helper()
	for _, path := range n.wants.paths {
		raw, err := os.ReadFile(path)
		require.NoError(n.t, err, what)
		require.Equal(n.t, content, string(raw), what)
		info, err := os.Stat(path)
		require.NoError(n.t, err)
		require.Equal(n.t, fs.FileMode(0o640), info.Mode(), what)
	}
}

func (n *node) write(path, text string) {
	require.NoError(n.t, os.WriteFile(path, []byte(text), 0o640))
}

// exchange replaces a directory with an empty one.
func exchange(t *testing.T, dir string) {
	require.NoError(t, os.Mkdir(dir+".new", 0o755))
	require.NoError(t, unix.Renameat2(unix.AT_FDCWD, dir+".new", unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE))
	require.NoError(t, os.RemoveAll(dir+".new"))
}

// inOwnTime runs a test with a clock that advances only while every goroutine waits, so that a
// busy machine makes no repair late.
func inOwnTime(t *testing.T, test func(t *testing.T, n *node)) {
	synctest.Test(t, func(t *testing.T) { test(t, newNode(t)) })
}

// Whatever becomes of a file, or of the directories above it, is repaired within a second, but
// not before a second look.
func TestCNI7_RepairedWithinASecond(t *testing.T) {
	inOwnTime(t, func(t *testing.T, n *node) {
		n.wants.paths = append(n.wants.paths, filepath.Join(n.dir, "a/other"))
		n.runs()
		a := filepath.Join(n.dir, "a")
		for round := range 2 {
			for what, damage := range map[string]func(){
				"edited":             func() { n.write(n.file, "other") },
				"edited, as long":    func() { n.write(n.file, "AS WANTED") },
				"replaced":           func() { n.write(n.file+".new", content+"?"); require.NoError(t, os.Rename(n.file+".new", n.file)) },
				"its mode":           func() { require.NoError(t, os.Chmod(n.file, 0o600)) },
				"removed":            func() { require.NoError(t, os.Remove(n.file)) },
				"moved away":         func() { require.NoError(t, os.Rename(n.file, filepath.Join(n.dir, "away"))) },
				"directory removed":  func() { require.NoError(t, os.RemoveAll(filepath.Dir(n.file))) },
				"directory replaced": func() { exchange(t, filepath.Dir(n.file)) },
				"one above removed":  func() { require.NoError(t, os.RemoveAll(a)) },
				"one above replaced": func() { exchange(t, a) },
				"led elsewhere": func() {
					require.NoError(t, os.Rename(a, fmt.Sprint(a, round)))
					require.NoError(t, os.Mkdir(a+"-other"+fmt.Sprint(round), 0o755))
					require.NoError(t, os.Symlink("a-other"+fmt.Sprint(round), a))
				},
			} {
				took := n.repairs(what, damage)
				require.Less(t, took, time.Second, what)
				require.GreaterOrEqual(t, took, 250*time.Millisecond, what)
				time.Sleep(time.Minute)
			}
		}
		require.Empty(t, n.outcomes)
	})
}

// A file that is just being written is left in peace, but not for long.
func TestCNI7_AHalfWrittenFileIsLookedAtTwice(t *testing.T) {
	inOwnTime(t, func(t *testing.T, n *node) {
		n.runs()
		before := n.wants.calls.Load()
		took := n.repairs("written slowly", func() {
			for i := range 6 { // from one look to the next
				time.Sleep(100 * time.Millisecond)
				require.Equal(t, before, n.wants.calls.Load(), i)
				n.write(n.file, fmt.Sprint(i))
			}
		})
		require.Less(t, took, 1100*time.Millisecond)
	})
}

// Another program that writes the same file is reported once. The repairs become rarer, and go
// on for ever.
func TestCNI7_AContestGoesOnMoreAndMoreRarely(t *testing.T) {
	inOwnTime(t, func(t *testing.T, n *node) {
		n.runs()
		begin, contested := time.Now(), 0
		for i := range 14 {
			n.write(n.file, "theirs")
			if got := n.next(); got.err != nil {
				require.ErrorContains(t, got.err, "step files: another program undoes each repair: repairing it more and more rarely, down to once in 1m0s")
				require.Equal(t, "plan.contested", bootstrap.Code(got.err))
				require.Equal(t, 5, i)
				contested++
			}
			n.requireWell("contest")
		}
		require.Equal(t, 1, contested)
		require.Greater(t, time.Since(begin), 2*time.Minute, "they are rare by now")
		time.Sleep(3 * time.Minute)
		require.Less(t, n.repairs("a later change is unrelated", func() { require.NoError(t, os.Remove(n.file)) }), time.Second)
	})
}

// A repair that fails is reported once, and tried again: at once if something changes. That it
// succeeds by another's doing is reported too.
func TestCNI7_AFailedRepairIsTriedAgain(t *testing.T) {
	inOwnTime(t, func(t *testing.T, n *node) {
		n.runs()
		block := func() {
			require.NoError(t, os.Remove(n.file))
			require.NoError(t, os.MkdirAll(n.file+"/full", 0o755))
			require.ErrorContains(t, n.next().err, n.file)
			time.Sleep(10 * time.Minute)
			require.Empty(t, n.outcomes)
		}
		block()
		require.Less(t, n.repairs("unblocked", func() { require.NoError(t, os.RemoveAll(n.file)) }), time.Second)
		block()
		require.NoError(t, os.RemoveAll(n.file))
		n.write(n.file, content)
		require.NoError(t, n.next().err)
		n.requireWell("by another")
	})
}

// Neither a server that is away, nor one that does not answer, keeps a repair from being made:
// of what the steps wanted when they were last applied. The node stays as unwell as the last run
// says.
func TestCNI7_PLAN2_RepairedWhileTheServerIsAway(t *testing.T) {
	for name, ask := range map[string]func(*node, func() error){
		"the plan's": func(n *node, server func() error) {
			n.plan.Prepare = func(_ context.Context, p *bootstrap.Plan) error {
				p.Steps[0].Wants = n.wants
				return server()
			}
		},
		"the step's": func(n *node, server func() error) {
			n.plan.Steps[0].Prepare = func(context.Context) (ledger.Wanter, error) { return n.wants, server() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inOwnTime(t, func(t *testing.T, n *node) {
				answers := make(chan error, 1)
				answers <- nil
				ask(n, func() error { return <-answers })
				n.plan.Steps[0].Wants = nil
				n.runs()
				n.trigger <- struct{}{} // it does not answer
				time.Sleep(time.Minute)
				require.NoError(t, os.Remove(n.file))
				time.Sleep(time.Second)
				n.requireWell("no answer")
				require.Empty(t, n.outcomes, "Done is not called while Prepare runs")
				answers <- errBoom
				repaired := n.next()
				require.NoError(t, repaired.err)
				require.Equal(t, bootstrap.Changed, repaired.report.Results[0].Status)
				require.ErrorIs(t, n.next().err, errBoom)

				require.NoError(t, os.Remove(n.file)) // the next run has begun, or is about to
				time.Sleep(time.Second)
				n.requireWell("it fails")
				answers <- errBoom
				for range 2 { // in whichever order
					require.ErrorIs(t, n.next().err, errBoom, "a repair makes no node well")
				}
				close(answers)
			})
		})
	}
}

// What a step waits for starts a run as soon as it comes, as long as the step was never applied.
func TestCNI7_WhatWasMissingStartsARun(t *testing.T) {
	inOwnTime(t, func(t *testing.T, n *node) {
		missing := filepath.Join(n.dir, "missing")
		n.wants.watch, n.wants.err = []string{missing}, func() error { _, err := os.Stat(missing); return err }
		n.run(t.Context())
		failures := 0
		for range 10 { // the waits grow
			require.ErrorIs(t, n.next().err, fs.ErrNotExist)
			failures++
		}
		begin := time.Now()
		n.write(missing, "")
		require.NoError(t, n.next().err)
		require.Less(t, time.Since(begin), time.Second)
		n.requireWell("it came")
		require.NoError(t, os.Remove(missing))
		require.ErrorIs(t, n.next().err, fs.ErrNotExist, "afterwards it is a repair that fails")
		n.write(missing, "")
		require.NoError(t, n.next().err)
	})
}

// What the program leaves out, or no longer wants, is not repaired.
func TestPLAN12_WhatIsNotWantedIsNotRepaired(t *testing.T) {
	for name, leave := range map[string]func(*bootstrap.Step){"skipped": func(s *bootstrap.Step) { s.Skip = "left out" }, "absent": func(s *bootstrap.Step) { s.Absent = true }} {
		t.Run(name, func(t *testing.T) {
			inOwnTime(t, func(t *testing.T, n *node) {
				var isLeft atomic.Bool
				n.plan.Prepare = func(_ context.Context, p *bootstrap.Plan) error {
					if isLeft.Load() {
						leave(&p.Steps[0])
					}
					return nil
				}
				n.runs()
				isLeft.Store(true)
				time.Sleep(24 * time.Hour)
				require.NoError(t, n.next().err)
				require.NoError(t, os.RemoveAll(n.file))
				time.Sleep(time.Hour)
				require.NoFileExists(t, n.file)
				require.Empty(t, n.outcomes)
			})
		})
	}
}

// book is another process's.
func (n *node) book(l *ledger.Ledger) *ledger.Book {
	n.t.Helper()
	l.Kinds = []*ledger.Kind{ledger.File(), ledger.Dir()}
	book, err := l.Open(n.t.Context())
	require.NoError(n.t, err)
	n.t.Cleanup(func() { book.Close() })
	return book
}

// A repair that is just waiting for the lock when the node is uninstalled, even if that is only
// the step, or taken over, is not made: what was removed stays so. The loop ends, and nobody is
// told of a failure.
func TestCNI7_PLAN11_PLAN20_TheLoopEndsQuietly(t *testing.T) {
	undo := func(steps ...string) func(*node) {
		return func(n *node) {
			book := n.book(remembers(n.dir, "pod"))
			require.NoError(n.t, book.MayUndo(n.t.Context()))
			_, err := book.Undo(n.t.Context(), steps)
			require.NoError(n.t, err)
		}
	}
	for name, other := range map[string]func(*node){
		"uninstalled": undo(),
		"the step is": undo("files"),
		"taken over":  func(n *node) { require.NoError(n.t, n.book(remembers(n.dir, "newer")).Claim(n.t.Context())) },
	} {
		for _, isRepairing := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " ", isRepairing), func(t *testing.T) {
				inOwnTime(t, func(t *testing.T, n *node) {
					var log bytes.Buffer
					n.plan.Trace = bootstrap.LogTrace(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
					n.plan.Steps = append(n.plan.Steps, bootstrap.Step{Name: "second", Wants: file(filepath.Join(n.dir, "second"))})
					n.plan.Host.LockTimeout = 24 * time.Hour
					n.runs()
					unlock, err := here(n.dir).Lock(t.Context(), "an uninstall")
					require.NoError(t, err)
					if isRepairing {
						require.NoError(t, os.Remove(n.file))
						time.Sleep(time.Minute)
					}
					other(n)
					require.NoError(t, os.RemoveAll(n.file))
					require.NoError(t, unlock())
					require.NoError(t, <-n.ended)
					require.NoFileExists(t, n.file)
					require.Empty(t, n.outcomes)
					require.NotContains(t, log.String(), " done", "it says at most what it waits for")
				})
			})
		}
	}
}

// A loop beside the process that has applied claims nothing, and keeps only what that has
// applied: on a node that was never prepared it fails, and ends where the step wants otherwise
// by now.
func TestCNI7_PLAN11_BesideAnotherProcess(t *testing.T) {
	inOwnTime(t, func(t *testing.T, n *node) {
		n.plan.Ledger.RepairOnly = true
		n.run(t.Context())
		got := n.next()
		require.ErrorIs(t, got.err, ledger.ErrNotApplied)
		require.ErrorIs(t, <-n.ended, ledger.ErrNotApplied)
		require.NoFileExists(t, n.file)
		require.NoDirExists(t, filepath.Join(n.dir, "state"))

		apply := func(owner string) {
			_, err := n.planOf(owner).Apply(t.Context())
			require.NoError(t, err)
		}
		apply("pod")
		n.runs()
		require.Less(t, n.repairs("removed", func() { require.NoError(t, os.Remove(n.file)) }), time.Second)
		n.wants.paths = append(n.wants.paths, filepath.Join(n.dir, "new")) // which is not recorded
		n.write(n.file, "other")
		require.NoError(t, <-n.ended)
		require.NoFileExists(t, n.wants.paths[1])

		n.wants.paths = n.wants.paths[:1]
		require.NoError(t, os.WriteFile(n.file, []byte(content), 0o640))
		apply("newer")
		n.plan = n.planOf("pod") // another process
		n.plan.Ledger.RepairOnly = true
		n.run(t.Context())
		require.ErrorIs(t, n.next().err, ledger.ErrNotOwner)
		require.ErrorIs(t, <-n.ended, ledger.ErrNotOwner)
		_, generation, err := n.book(remembers(n.dir, "x")).Owner()
		require.NoError(t, err)
		require.Equal(t, 2, generation)
	})
}

// A look lists no directory, however many other files there are and how often one comes: it
// costs as much as there are files that matter.
func TestCNI7_SEC6_ALookListsNoDirectory(t *testing.T) {
	inOwnTime(t, func(t *testing.T, n *node) {
		dir := filepath.Dir(n.file)
		n.wants.watch = []string{dir + "/"}
		n.runs()
		for i := range 5000 {
			n.write(filepath.Join(dir, fmt.Sprint(i)), "")
		}
		time.Sleep(time.Minute)
		never := unix.Timespec{Sec: 1}
		setTime := func() {
			require.NoError(t, unix.UtimesNanoAt(unix.AT_FDCWD, dir, []unix.Timespec{never, {Nsec: unix.UTIME_OMIT}}, 0))
		}
		isRead := func() bool {
			var st unix.Stat_t
			require.NoError(t, unix.Stat(dir, &st))
			return st.Atim != never
		}
		setTime()
		_, err := os.ReadDir(dir)
		require.NoError(t, err)
		if !isRead() {
			testns.SkipKernel(t, "times of access")
		}
		setTime()
		time.Sleep(time.Minute)
		require.False(t, isRead())
		require.Empty(t, n.outcomes)
		before := n.wants.calls.Load()
		time.Sleep(time.Minute)
		require.Equal(t, before, n.wants.calls.Load())
	})
}
