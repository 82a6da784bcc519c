// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestNS1_EntersWhatIsNamedAndNothingElse(t *testing.T) {
	target := foreign(t)
	for _, ns := range [][]string{
		{"mnt"}, {"cgroup"}, {"net"}, {"uts"}, {"ipc"}, {"mnt", "net"}, everyNamespace,
	} {
		t.Run(strings.Join(ns, "|"), func(t *testing.T) {
			inside := map[string]string{}
			require.NoError(t, hostns.Do(t.Context(), target, ns, func(context.Context) (err error) {
				for _, file := range everyNamespace {
					inside[file], err = os.Readlink("/proc/thread-self/ns/" + file)
					if err != nil {
						return err
					}
				}
				return nil
			}))
			for _, file := range everyNamespace {
				side := "/proc/self"
				if slices.Contains(ns, file) {
					side = target
					require.NotEqual(t, namespaceOf(t, "/proc/self", file), namespaceOf(t, target, file))
				}
				require.Equal(t, namespaceOf(t, side, file), inside[file], file)
			}
		})
	}
}

func TestWorkingDirectoryIsTheTargetsRoot(t *testing.T) {
	for _, target := range []string{foreign(t), "/proc/self"} {
		before, err := os.Getwd()
		require.NoError(t, err)
		require.NoError(t, hostns.Do(t.Context(), target, []string{"mnt"}, func(context.Context) error {
			cwd, err := os.Readlink("/proc/thread-self/cwd")
			require.NoError(t, err)
			require.Equal(t, "/", cwd)
			return nil
		}))
		after, err := os.Readlink("/proc/self/cwd")
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}

// A thread locked in other namespaces keeps those that a call does not name: otherwise a test
// or a nested call would fall back to the machine's.
func TestNestedCallsAddUp(t *testing.T) {
	outer, inner := foreign(t), foreign(t)
	require.NoError(t, hostns.Do(t.Context(), outer, []string{"mnt", "net"}, func(ctx context.Context) error {
		return hostns.Do(ctx, inner, []string{"uts", "ipc"}, func(context.Context) error {
			for file, owner := range map[string]string{"mnt": outer, "net": outer, "uts": inner, "ipc": inner, "cgroup": "/proc/self"} {
				require.Equal(t, namespaceOf(t, owner, file), namespaceOf(t, "/proc/thread-self", file), file)
			}
			return nil
		})
	}))
	t.Run("of a test", func(t *testing.T) {
		testns.Enter(t, testns.Net)
		own := namespaceOf(t, "/proc/thread-self", "net")
		require.NoError(t, hostns.Do(t.Context(), outer, []string{"mnt"}, func(context.Context) error {
			require.Equal(t, own, namespaceOf(t, "/proc/thread-self", "net"))
			return nil
		}))
	})
}

func TestNS3_PanicIsAnErrorWithItsStack(t *testing.T) {
	cause := errors.New("cause")
	for _, v := range []any{cause, "cause"} {
		err := hostns.Do(t.Context(), foreign(t), []string{"uts"}, func(context.Context) error { explode(v); return nil })
		require.ErrorContains(t, err, "panic in a namespace: cause\n")
		require.ErrorContains(t, err, "hostns_test.explode(")
		if v == cause {
			require.ErrorIs(t, err, cause)
		}
	}
}

func explode(v any) { panic(v) }

func TestNS3_GoexitIsAnError(t *testing.T) {
	inner := &testing.T{}
	err := hostns.Do(t.Context(), foreign(t), []string{"uts"}, func(context.Context) error {
		inner.FailNow()
		return nil
	})
	require.ErrorContains(t, err, "runtime.Goexit")
	require.True(t, inner.Failed())
}

func TestNS4_AlwaysWaitsAndPassesTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), testing.TB(t), "value"))
	finished := false
	err := hostns.Do(ctx, foreign(t), []string{"uts"}, func(ctx context.Context) error {
		require.Equal(t, "value", ctx.Value(testing.TB(t)))
		cancel()
		<-ctx.Done()
		finished = true
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, finished)
}

func TestNS4_ProgramsInheritTheNamespacesAndNoDescriptor(t *testing.T) {
	target := foreign(t)
	require.NoError(t, hostns.Do(t.Context(), target, everyNamespace, func(context.Context) error {
		out, err := exec.Command("readlink", "/proc/self/ns/mnt", "/proc/self/ns/net").Output()
		require.NoError(t, err)
		require.Equal(t, namespaceOf(t, target, "mnt")+"\n"+namespaceOf(t, target, "net")+"\n", string(out))
		out, err = exec.Command("sh", "-c", "ls -l /proc/$$/fd").Output()
		require.NoError(t, err)
		require.NotRegexp(t, `(mnt|cgroup|net|uts|ipc):\[`, string(out))
		return nil
	}))
}

// NS 5: the source is only in the caller's mount namespace, the destination
// only in the host's.
func TestNS5_CallersFilesAreOpenedBeforeEntry(t *testing.T) {
	host := foreign(t)
	source, destination := t.TempDir(), t.TempDir()
	t.Run("container", func(t *testing.T) {
		testns.Enter(t, testns.Mount)
		require.NoError(t, unix.Mount("container", source, "tmpfs", 0, ""))
		require.NoError(t, os.WriteFile(filepath.Join(source, "plugin"), []byte("content"), 0o600))
		root, err := os.OpenRoot(source)
		require.NoError(t, err)
		defer root.Close()

		require.NoError(t, hostns.Do(t.Context(), host, []string{"mnt"}, func(context.Context) error {
			require.NoError(t, unix.Mount("host", destination, "tmpfs", 0, ""))
			require.NoFileExists(t, filepath.Join(source, "plugin"), "a path is the host's")
			content, err := root.ReadFile("plugin")
			require.NoError(t, err)
			return os.WriteFile(filepath.Join(destination, "plugin"), content, 0o600)
		}))
		require.NoFileExists(t, filepath.Join(destination, "plugin"), "of the container")
	})
	require.NoFileExists(t, filepath.Join(destination, "plugin"), "of the machine")
	content, err := os.ReadFile(filepath.Join(host, "root", destination, "plugin"))
	require.NoError(t, err)
	require.Equal(t, "content", string(content))
}

// hostname is an action on the UTS namespace in which it runs.
type hostname struct{ before, after string }

func (h hostname) Check(context.Context) ([]string, error)     { return h.change(h.after) }
func (h hostname) Apply(context.Context) error                 { return unix.Sethostname([]byte(h.after)) }
func (h hostname) CheckUndo(context.Context) ([]string, error) { return h.change(h.before) }
func (h hostname) Undo(context.Context) error                  { return unix.Sethostname([]byte(h.before)) }

func (hostname) Advise(context.Context) ([]string, error) {
	now, err := os.Hostname()
	return []string{"it is " + now}, err
}

func (h hostname) change(to string) ([]string, error) {
	if now, err := os.Hostname(); err != nil || now == to {
		return nil, err
	}
	return []string{"name the host " + to}, nil
}

func (hostname) OnHost() (namespaces []string, places map[string]string) {
	return []string{"uts"}, nil
}

// hostOf is the host whose pid 1 is the process.
func hostOf(t *testing.T, process string) hostns.Host {
	t.Helper()
	proc := t.TempDir()
	require.NoError(t, os.Symlink(process, filepath.Join(proc, "1")))
	return hostns.Host{Proc: proc, LockFile: filepath.Join(t.TempDir(), "lock")}
}

func TestNS6_APlanRunsEveryMethodInside(t *testing.T) {
	here, err := os.Hostname()
	require.NoError(t, err)
	a := hostname{before: "before", after: "after"}
	plan := bootstrap.Plan{Host: hostOf(t, foreign(t)), Steps: []bootstrap.Step{{Name: "name", Action: a}}}
	result := func(run func(context.Context) (*bootstrap.Report, error)) bootstrap.Result {
		report, err := run(t.Context())
		require.NoError(t, err)
		return report.Results[0]
	}
	result(plan.Revert) // not to the machine's name

	checked := result(plan.Check)
	require.Equal(t, []string{"name the host after"}, checked.Changes)
	require.Equal(t, []string{"it is before"}, checked.Advice)
	applied := result(plan.Apply)
	require.Equal(t, bootstrap.Changed, applied.Status, "it was verified inside, too")
	require.Equal(t, []string{"it is after"}, applied.Advice)
	require.Equal(t, bootstrap.Unchanged, result(plan.Apply).Status)

	require.Equal(t, bootstrap.Changed, result(plan.Revert).Status)
	require.Equal(t, bootstrap.Unchanged, result(plan.Revert).Status, "it was undone inside")
	now, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, here, now, "the machine's own name")
}

func TestNS2_EnterReturnsTheFunctionsErrorsOrItsOwn(t *testing.T) {
	cause := errors.New("cause")
	host := hostOf(t, foreign(t))
	require.ErrorIs(t, host.Do(t.Context(), []string{"uts"}, func(context.Context) error { return cause }), cause)

	plan := bootstrap.Plan{Host: hostns.Host{Proc: "/does/not/exist"}, Steps: []bootstrap.Step{{Name: "name", Action: hostname{}}}}
	for _, run := range []func(context.Context) (*bootstrap.Report, error){plan.Check, plan.Apply} {
		report, err := run(t.Context())
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.Equal(t, bootstrap.Failed, report.Results[0].Status)
		require.ErrorContains(t, err, "/does/not/exist/1")
		require.False(t, strings.Contains(err.Error(), "\n"))
	}
}

// Inside, a second Do enters nothing: it stays on the same thread.
func TestNS1_WhoIsInsideStaysOnTheThread(t *testing.T) {
	host, other := hostOf(t, foreign(t)), hostOf(t, foreign(t))
	both := []string{"uts", "net"}
	require.NoError(t, host.Do(t.Context(), both, func(ctx context.Context) error {
		tid, name := unix.Gettid(), namespaceOf(t, "/proc/thread-self", "uts")
		for _, namespaces := range [][]string{{"uts"}, {"net"}, both, nil} {
			require.NoError(t, host.Do(ctx, namespaces, func(context.Context) error {
				require.Equal(t, tid, unix.Gettid(), namespaces)
				return nil
			}))
		}
		require.NoError(t, host.Do(ctx, []string{"uts", "ipc"}, func(context.Context) error {
			require.NotEqual(t, tid, unix.Gettid(), "one more")
			require.Equal(t, name, namespaceOf(t, "/proc/thread-self", "uts"))
			return nil
		}))
		return other.Do(ctx, []string{"uts"}, func(context.Context) error {
			require.NotEqual(t, name, namespaceOf(t, "/proc/thread-self", "uts"), "another host's")
			return nil
		})
	}))
	kept := t.Context()
	require.NoError(t, host.Do(t.Context(), both, func(ctx context.Context) error { kept = ctx; return nil }))
	mine := namespaceOf(t, "/proc/thread-self", "uts")
	require.NoError(t, host.Do(kept, []string{"uts"}, func(context.Context) error {
		require.NotEqual(t, mine, namespaceOf(t, "/proc/thread-self", "uts"), "a context kept after the call is no longer inside")
		return nil
	}))
}
