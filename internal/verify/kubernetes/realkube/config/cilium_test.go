// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build compare

package config_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// releases are the Cilium releases whose build-config ours is compared with.
var releases = []struct {
	name string
	realkube.Release
}{{"Cilium 1.18", realkube.Cilium118}, {"Cilium 1.20", realkube.Cilium120}}

// comparing builds Cilium's build-config, which takes 4 CPU-minutes each the first time; hence
// the build tag.
func comparing(t *testing.T) (ours string, theirs []string) {
	t.Helper()
	for _, release := range releases {
		program, err := release.Debug(t.Context(), os.Stderr)
		require.NoError(t, err)
		theirs = append(theirs, program)
	}
	return buildNodeinit(t), theirs
}

// buildConfig runs a build-config, ours or theirs, with the same flags.
func buildConfig(t testing.TB, program, kubeconfig, namespace, node, dest string, args ...string) took {
	t.Helper()
	cmd := command(t, program, kubeconfig, namespace, node, dest, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	err := cmd.Run()
	require.NoError(t, err, "%s", out.String())
	return took{time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}

// took is a run's duration and processor time: on a busy machine only the second is comparable.
type took struct{ wall, cpu time.Duration }

// peakOf is the peak memory of a program. That of wait4(2) for a child of this test would
// include the test's own, which the child has until exec.
func peakOf(t testing.TB, cmd *exec.Cmd) (peak int64) {
	t.Helper()
	measured := filepath.Join(t.TempDir(), "measured")
	cmd.Path, cmd.Args = "/usr/bin/time", append([]string{"time", "-q", "-f", "%M", "-o", measured}, cmd.Args...)
	require.NoError(t, cmd.Run())
	text, err := os.ReadFile(measured)
	require.NoError(t, err)
	_, err = fmt.Sscan(string(text), &peak)
	require.NoError(t, err)
	return peak << 10
}

func (v vector) flags() []string {
	var args []string
	for _, source := range v.fill(v.Sources) {
		args = append(args, "--source", source)
	}
	for flag, keys := range map[string][]string{"--allow-config-keys": v.Allow, "--deny-config-keys": v.Deny} {
		if len(keys) > 0 {
			args = append(args, flag, strings.Join(keys, ","))
		}
	}
	return args
}

// TestCompatible_SameDirectoryAsCilium compares every key and every value, also
// of the two keys that the writer adds.
func TestCompatible_SameDirectoryAsCilium(t *testing.T) {
	ours, theirs := comparing(t)
	peer := kubeconfig(t, server, realkube.Admin)
	for _, v := range vectors {
		if v.Differs != "" {
			t.Logf("%s: differs on purpose: %s", v.Name, v.Differs)
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			v.prepareOnce(t)
			mine := filepath.Join(t.TempDir(), "mine")
			if v.Optional { // the command line has no such option
				client, _ := connect(t, kube.Connection{})
				config, err := v.resolver(t, client).Resolve(t.Context())
				require.NoError(t, err)
				_, err = configdir.Write(t.Context(), mine, config)
				require.NoError(t, err)
			} else {
				buildConfig(t, ours, kubeconfig(t, server, agent), v.namespace(), v.node(), mine, v.flags()...)
			}
			for i, program := range theirs {
				its := filepath.Join(t.TempDir(), "its")
				buildConfig(t, program, peer, v.namespace(), v.node(), its, v.flags()...)
				require.Equal(t, readDir(t, its), readDir(t, mine), releases[i].name)
			}
		})
	}
}

// TestCompare_CostOfANode runs all programs in turn on a node with three sources, as in a pod,
// and prints the cost of each. On ext4, above all without a journal, creating files is slow for
// some minutes after many were deleted: measure that row on a disk that was quiet.
func TestCompare_CostOfANode(t *testing.T) {
	ours, theirs := comparing(t)
	programs := []string{unpacked(t, ours)}
	for _, program := range theirs {
		programs = append(programs, unpacked(t, program))
	}
	const name, rounds = "compare", 30
	createNamespace(t, name)
	createConfigMap(t, name, "cilium-config", agentConfig())
	createNodeConfig(t, name, nodeConfig{"x", `{"matchLabels":{"zone":"a"}}`, values{"debug": "true"}})
	createBusyNode(t, name, values{"zone": "a"}, values{"config.cilium.io/debug": "false"})
	var results []cost
	for _, program := range programs {
		results = append(results, costOf(t, program, name))
	}
	memory, err := os.MkdirTemp("/dev/shm", "compare-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(memory)) })
	asPod(t)
	inTurn := func(times int, run func(i int, program, dest string)) {
		for round := range times { // a node runs it once, so no run reuses a directory
			for i, program := range programs {
				run(i, program, fmt.Sprintf("%d-%d", i, round))
			}
		}
	}
	inTurn(rounds, func(i int, program, dest string) {
		results[i].memory = append(results[i].memory, buildConfig(t, program, "", name, name, filepath.Join(memory, dest), threeFlags...))
	})
	inTurn(rounds, func(i int, program, dest string) {
		results[i].disk = append(results[i].disk, buildConfig(t, program, "", name, name, filepath.Join(t.TempDir(), dest), threeFlags...))
	})
	inTurn(3, func(i int, program, dest string) {
		peak := peakOf(t, command(t, program, "", name, name, filepath.Join(memory, dest+"-peak"), threeFlags...))
		results[i].peak = max(results[i].peak, peak)
	})
	logCosts(t, results)
	mine := results[0]
	require.LessOrEqual(t, mine.requests, 3)
	require.Less(t, mine.bytes, int64(20_000))
	for i, its := range results[1:] {
		require.LessOrEqual(t, 3*mine.peak, its.peak, "at most a third of the memory of %s", releases[i].name)
	}
}

// logCosts prints a table: the cost of nodeinit, and for each release its cost and the ratio to
// ours.
func logCosts(t *testing.T, results []cost) {
	t.Helper()
	head := fmt.Sprintf("%-26s %12s", "", "nodeinit")
	for _, release := range releases {
		head += fmt.Sprintf(" %20s", release.name)
	}
	t.Log(head)
	wall, cpu := func(t took) time.Duration { return t.wall }, func(t took) time.Duration { return t.cpu }
	for _, row := range []struct {
		what, unit string
		of         func(cost) float64
	}{
		{"requests", "", func(c cost) float64 { return float64(c.requests) }},
		{"bytes on the wire", "kB", func(c cost) float64 { return float64(c.bytes) / 1000 }},
		{"time, emptyDir in memory", "ms", func(c cost) float64 { return median(c.memory, wall) }},
		{"processor time of that", "ms", func(c cost) float64 { return median(c.memory, cpu) }},
		{"time, emptyDir on disk", "ms", func(c cost) float64 { return median(c.disk, wall) }},
		{"processor time of that", "ms", func(c cost) float64 { return median(c.disk, cpu) }},
		{"peak memory", "Mi", func(c cost) float64 { return float64(c.peak) / (1 << 20) }},
	} {
		mine := row.of(results[0])
		line := fmt.Sprintf("%-26s %9.1f %-2s", row.what, mine, row.unit)
		for _, its := range results[1:] {
			line += fmt.Sprintf(" %9.1f %-2s %6.1fx", row.of(its), row.unit, row.of(its)/mine)
		}
		t.Log(line)
	}
}

// asPod puts a ServiceAccount's credentials where a pod has them, for the test and its
// children, in a new mount namespace.
func asPod(t *testing.T) {
	t.Helper()
	testns.Enter(t, testns.Mount)
	require.NoError(t, unix.Mount("tmpfs", "/run", "tmpfs", 0, "")) // /var/run too
	const dir = "/var/run/secrets/kubernetes.io/serviceaccount"
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), server.CAPEM, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte(realkube.Admin.Token()), 0o600))
}

// unpacked copies a program as containerd unpacks an image, 32 KiB at a time. How a file was
// written determines how the page cache holds it: a program fresh from the linker, or written
// in one piece, differs in its start by a millisecond.
func unpacked(t *testing.T, program string) string {
	t.Helper()
	from, err := os.Open(program)
	require.NoError(t, err)
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(t.TempDir(), filepath.Base(program)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	require.NoError(t, err)
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 32<<10))
	require.NoError(t, err)
	require.NoError(t, to.Close())
	return to.Name()
}

type cost struct {
	requests     int
	bytes, peak  int64
	memory, disk []took // by the file system of the directory
}

// median returns milliseconds.
func median(runs []took, of func(took) time.Duration) float64 {
	var times []time.Duration
	for _, run := range runs {
		times = append(times, of(run))
	}
	slices.Sort(times)
	return float64(times[len(times)/2].Microseconds()) / 1000
}

// costOf runs a program once through a counting wire.
func costOf(t *testing.T, program, name string) cost {
	t.Helper()
	wire := newWire(t, server)
	path, err := server.Kubeconfig(t.TempDir(), realkube.Admin, wire.url)
	require.NoError(t, err)
	mark, err := server.AuditMark()
	require.NoError(t, err)
	buildConfig(t, program, path, name, name, filepath.Join(t.TempDir(), "config"), threeFlags...)
	events, err := server.Audit(mark, "")
	require.NoError(t, err)
	c := cost{requests: len(events), bytes: wire.up.Load() + wire.down.Load()}
	for _, e := range events {
		t.Logf("%s: %s", filepath.Base(program), e)
	}
	return c
}
