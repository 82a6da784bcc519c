// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/flock"
)

const slow = 5 * time.Minute // far longer than anything here takes on any machine

// ownTime runs a test with a fake clock that advances only while every goroutine waits, so that
// a busy machine does not make the guard late.
func ownTime(t *testing.T, test func(*testing.T)) { synctest.Test(t, test) }

// guarded is a running guard.
type guarded struct {
	t        *testing.T
	repaired chan []string
	trouble  chan error
	ended    chan error
	cancel   context.CancelFunc
}

// start runs the guard of an installation, with its ledger, until the test ends.
func start(t *testing.T, i recorded, g cniinstall.Guard, run func(context.Context, cniinstall.Guard) error) *guarded {
	ctx, cancel := context.WithCancel(i.with(context.Background()))
	g.Install, g.Step = i.Install, step
	r := &guarded{t, make(chan []string, 10000), make(chan error, 10000), make(chan error, 1), cancel}
	g.Done = func(changes []string, err error) {
		if err != nil {
			r.trouble <- err
		} else {
			r.repaired <- changes
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ended <- run(ctx, g)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

func plainly(ctx context.Context, g cniinstall.Guard) error { return g.Run(ctx) }

// repair waits for a repair and returns the files repaired.
func (r *guarded) repair() []string {
	r.t.Helper()
	select {
	case changes := <-r.repaired:
		return changes
	case err := <-r.ended:
		require.NoError(r.t, err, "the guard has ended")
	case err := <-r.trouble:
		require.NoError(r.t, err, "the guard is in trouble")
	case <-time.After(slow):
		require.Fail(r.t, "nothing is repaired")
	}
	return nil
}

func (r *guarded) end() error {
	r.t.Helper()
	return receive(r.t, r.ended)
}

func receive[T any](t *testing.T, from chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(slow):
		require.Fail(t, "nothing happens")
	}
	return v
}

// guardedNode is a node with a guarded installation.
func guardedNode(t *testing.T) (node, *guarded) {
	return guardedNodeIn(t, fastDir(t, "/bin/true"))
}

func guardedNodeIn(t *testing.T, root string) (node, *guarded) {
	n := newNodeIn(t, root)
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	return n, start(t, i, cniinstall.Guard{Lock: n.lock}, plainly)
}

func (n node) lock(ctx context.Context) (func() error, error) {
	return flock.File{Path: filepath.Join(n.root, "lock"), Timeout: slow}.Lock(ctx)
}

// exchange replaces dir with an empty directory.
func exchange(t *testing.T, dir string) {
	require.NoError(t, os.Mkdir(dir+".new", 0o755))
	require.NoError(t, unix.Renameat2(unix.AT_FDCWD, dir+".new", unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE))
	require.NoError(t, os.RemoveAll(dir+".new"))
}

// The configuration is edited, deleted, renamed away and its directory replaced, a hundred
// times each on ten nodes at a time, as fast as the guard repairs; likewise a plugin and its
// directory.
func TestCNI7_RepairedWithinASecond(t *testing.T) {
	ownTime(t, func(t *testing.T) {
		rounds := 10
		if testing.Short() {
			rounds = 1
		}
		var nodes [10]node
		var guards [10]*guarded
		for k := range nodes {
			nodes[k], guards[k] = guardedNode(t)
		}
		open := len(namesIn(t, "/proc/self/fd"))
		plugin := script("0.3.1", "0.4.0", "1.0.0")
		broken := func(what string, round int, f func(n node)) {
			var begin [len(nodes)]time.Time
			for k, n := range nodes {
				begin[k] = time.Now()
				f(n)
			}
			for k, n := range nodes {
				guards[k].repair()
				took := time.Since(begin[k])
				require.Less(t, took, time.Second, "round %d: %s", round, what)
				requireContent(t, n.confFile(), agentConf, 0o600)
				requireContent(t, n.plugin("cilium-cni"), plugin, 0o755)
			}
		}
		for round := range rounds {
			broken("edit", round, func(n node) { write(t, n.confFile(), fmt.Sprint("edited ", round), 0o600) })
			broken("delete", round, func(n node) { require.NoError(t, os.Remove(n.confFile())) })
			broken("rename away", round, func(n node) { require.NoError(t, os.Rename(n.confFile(), n.conf+"/away")) })
			broken("replace directory", round, func(n node) { exchange(t, n.conf) })
			if round%4 != 0 {
				continue
			}
			broken("edit plugin", round, func(n node) { write(t, n.plugin("cilium-cni"), fmt.Sprint("#", round, plugin), 0o755) })
			broken("mode of plugin", round, func(n node) { require.NoError(t, os.Chmod(n.plugin("cilium-cni"), 0o644)) })
			broken("replace directory of plugins", round, func(n node) { exchange(t, n.bin) })
		}
		for k := range nodes {
			guards[k].cancel()
			require.ErrorIs(t, guards[k].end(), context.Canceled)
		}
		require.Less(t, len(namesIn(t, "/proc/self/fd")), open+3*len(nodes), "no repair leaves a file open")
		for k, n := range nodes {
			require.NoError(t, os.RemoveAll(n.conf+"/away"))
			requireConverged(t, n.install(), n.root)
			require.Empty(t, guards[k].trouble)
		}
	})
}

// Every folder on the path may be replaced, symbolic links included; the replacement is
// watched.
func TestCNI7_FoldersOnTheWay(t *testing.T) {
	ownTime(t, func(t *testing.T) {
		n := newNodeIn(t, fastDir(t, "/bin/true"))
		real1, real2 := filepath.Join(n.root, "real/1/net.d"), filepath.Join(n.root, "real/2")
		require.NoError(t, os.MkdirAll(real1, 0o755))
		require.NoError(t, os.MkdirAll(real2, 0o755))
		link := filepath.Join(n.root, "etc/cni")
		require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o755))
		require.NoError(t, os.Symlink("../real/1", link))
		i := n.install()
		require.NoError(t, i.Apply(t.Context()))
		g := start(t, i, cniinstall.Guard{Lock: n.lock}, plainly)
		repaired := func(f func()) {
			t.Helper()
			begin := time.Now()
			f()
			g.repair()
			require.Less(t, time.Since(begin), time.Second)
			requireContent(t, n.confFile(), agentConf, 0o600)
			require.FileExists(t, n.plugin("cilium-cni"))
		}
		repaired(func() { // the link points elsewhere
			require.NoError(t, os.Symlink("../real/2", link+".new"))
			require.NoError(t, os.Rename(link+".new", link))
		})
		requireContent(t, real2+"/net.d/05-cilium.conflist", agentConf, 0o600)
		repaired(func() { exchange(t, real2) }) // the link's target is another folder
		repaired(func() { exchange(t, filepath.Join(n.root, "opt")) })
		repaired(func() { exchange(t, filepath.Join(n.root, "opt/cni")) })
		repaired(func() { require.NoError(t, os.RemoveAll(filepath.Join(n.root, "opt"))) })
		require.Empty(t, g.trouble)
		require.NoError(t, os.Rename(real2, real2+".away")) // a dangling link is not replaced
		require.ErrorContains(t, receive(t, g.trouble), link+": it is a link that leads nowhere")
		require.NoError(t, os.Rename(real2+".away", real2))
		require.NoError(t, os.Remove(n.confFile()))
		receive(t, g.repaired)
		requireContent(t, real2+"/net.d/05-cilium.conflist", agentConf, 0o600)
	})
}

// A configuration that another CNI adds is set aside.
func TestCNI5_CNI7_ExclusiveIsGuarded(t *testing.T) {
	ownTime(t, func(t *testing.T) {
		n := newNodeIn(t, fastDir(t, "/bin/true"))
		i := n.install()
		i.Exclusive = true
		require.NoError(t, i.Apply(t.Context()))
		g := start(t, i, cniinstall.Guard{Lock: n.lock}, plainly)
		write(t, n.conf+"/.other", "other", 0o644)
		require.NoError(t, os.Rename(n.conf+"/.other", n.conf+"/00-other.conflist")) // in one step: a half-written file may not parse
		g.repair()
		require.NoFileExists(t, n.conf+"/00-other.conflist")
		requireContent(t, n.conf+"/00-other.conflist.cilium_bak", "other", 0o644)
	})
}

// A chained configuration follows its target, even if another program of the same owner made
// the update; the guard continues.
func TestCNI4_CNI7_ChainFollowsTheOther(t *testing.T) {
	ownTime(t, func(t *testing.T) {
		n := newNodeIn(t, fastDir(t, "/bin/true"))
		other := func(mtu int) string {
			return fmt.Sprintf(`{"cniVersion":"0.3.1","name":"other","plugins":[{"type":"cilium-cni"},{"type":"bridge","mtu":%d}]}`, mtu)
		}
		path := n.conf + "/10-other.conflist"
		n.source("bridge", script("0.3.1", "1.0.0"))
		write(t, path, other(1), 0o644)
		i := n.install()
		i.Config = cniinstall.Chained{Plugin: json.RawMessage(`{"type":"cilium-cni","mine":true}`)}
		require.NoError(t, i.Apply(t.Context()))
		write(t, path, other(2), 0o644) // before the guard runs
		g := start(t, i, cniinstall.Guard{Lock: n.lock}, plainly)
		follows := func(mtu int) {
			t.Helper()
			raw, err := os.ReadFile(n.confFile())
			require.NoError(t, err)
			require.Contains(t, string(raw), fmt.Sprintf(`"mtu": %d`, mtu))
			require.Contains(t, string(raw), `"mine": true`)
		}
		g.repair()
		follows(2)
		write(t, path, other(3), 0o644)
		g.repair()
		follows(3)

		unlock, err := n.lock(t.Context()) // another program is faster
		require.NoError(t, err)
		write(t, path, other(4), 0o644)
		require.NoError(t, i.Apply(t.Context()))
		require.NoError(t, unlock())
		write(t, path, other(5), 0o644)
		g.repair()
		follows(5)

		require.NoError(t, os.Remove(path))
		require.ErrorIs(t, receive(t, g.trouble), cniinstall.ErrTargetMissing)
		write(t, path, other(6), 0o644)
		g.repair()
		follows(6)
	})
}

// Unrelated changes do not wake the guard, and its own do not wake it forever: it takes the
// lock once per repair.
func TestCNI7_LockForTheRepairOnly(t *testing.T) {
	ownTime(t, func(t *testing.T) {
		n := newNodeIn(t, fastDir(t, "/bin/true"))
		i := n.install()
		require.NoError(t, i.Apply(t.Context()))
		taken, held := make(chan bool, 100), make(chan bool, 100)
		g := start(t, i, cniinstall.Guard{Lock: func(context.Context) (func() error, error) {
			taken <- true
			return func() error { held <- true; return nil }, nil
		}}, plainly)
		for range 3 {
			write(t, n.conf+"/other-kubeconfig", "token", 0o600)
			write(t, n.conf+"/99-other.conflist", "other", 0o600)
			require.NoError(t, os.Remove(n.confFile()))
			g.repair()
			receive(t, taken)
			receive(t, held)
		}
		require.Empty(t, taken)
		require.Empty(t, g.repaired)
	})
}

// Another program that undoes each repair is reported once, and the repairs become rarer; the
// guard never gives up.
func TestCNI7_AContestGoesOnMoreAndMoreRarely(t *testing.T) {
	ownTime(t, func(t *testing.T) {
		n, g := guardedNode(t)
		begin := time.Now()
		for range 9 {
			write(t, n.confFile(), "theirs", 0o600)
			receive(t, g.repaired)
		}
		err := receive(t, g.trouble)
		require.ErrorIs(t, err, cniinstall.ErrContested)
		require.Empty(t, g.trouble, "reported once")
		require.Greater(t, time.Since(begin), 3*time.Second)
		for range 5 {
			write(t, n.confFile(), "theirs", 0o600)
			receive(t, g.repaired)
		}
		require.Greater(t, time.Since(begin), time.Minute, "they are rare by now")
		require.Empty(t, g.ended)
		time.Sleep(3 * time.Minute) // by the test's own clock
		require.NoError(t, os.Remove(n.confFile()))
		begin = time.Now()
		g.repair()
		require.Less(t, time.Since(begin), time.Second, "a later change is unrelated")
	})
}

// fastDir is a temporary folder in memory, if one allows executing programs: thousands of
// fsyncs would only test the disk.
func fastDir(t *testing.T, program string) string {
	dir, err := os.MkdirTemp("/dev/shm", "cniinstall-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	raw, err := os.ReadFile(program)
	require.NoError(t, err)
	probe := filepath.Join(dir, "probe")
	write(t, probe, string(raw), 0o755)
	defer os.Remove(probe)
	if exec.Command(probe).Run() != nil {
		return t.TempDir()
	}
	return dir
}
