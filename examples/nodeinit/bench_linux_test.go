// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkCommands measures whole processes, from start to exit, on a node where there is
// nothing to change: medians of the time and of the peak memory.
func BenchmarkCommands(b *testing.B) {
	n := newNode(b)
	n.ok(n.args("apply")...)
	for name, args := range map[string][]string{
		"apply": n.args("apply"), "mount-cgroup": {"mount-cgroup"}, "preflight": {"check", "--only", "preflight"}, "help": {"--help"},
	} {
		b.Run(name, func(b *testing.B) {
			var times []time.Duration
			var peaks []int64
			for b.Loop() {
				cmd := n.Command(binary, args...)
				times = append(times, took(b, cmd.Run))
				peaks = append(peaks, int64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss))
			}
			b.ReportMetric(median(times).Seconds()*1000, "ms-median")
			b.ReportMetric(float64(median(peaks))/1024, "MiB-peak-median")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkCNI1_LargePlugin measures install-cni with a plugin of 70 MB that is new, beside cp
// and sync, and with one that is there, beside cmp: ratios of medians.
func BenchmarkCNI1_LargePlugin(b *testing.B) {
	n := newNode(b)
	source, to := filepath.Join(n.plugins, "test-cni"), filepath.Join(n.work, "bin")
	require.NoError(b, os.WriteFile(source, append([]byte(plugin+"exit 0\n"), bytes.Repeat([]byte("0123456789abcde\n"), 70<<16)...), 0o755))
	install := []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--cni-bin-dir", to}
	var first, again, cp, cmp []time.Duration
	for b.Loop() {
		n.ok("uninstall")
		n.shell("rm -rf " + to + "; mkdir " + to + "; sync")
		run := func(command string, args ...string) time.Duration { return took(b, n.Command(command, args...).Run) }
		first = append(first, run(binary, install...))
		again = append(again, run(binary, install...))
		cp = append(cp, run("sh", "-c", "cp $0 $1/copy && sync $1/copy", source, to))
		cmp = append(cmp, run("cmp", source, filepath.Join(to, "copy")))
	}
	b.ReportMetric(median(first).Seconds()/median(cp).Seconds(), "of-cp-and-sync")
	b.ReportMetric(median(again).Seconds()/median(cmp).Seconds(), "of-cmp")
	b.ReportMetric(0, "ns/op")
}

func took(b *testing.B, run func() error) time.Duration {
	b.Helper()
	start := time.Now()
	require.NoError(b, run())
	return time.Since(start)
}

func median[T time.Duration | int64](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}
