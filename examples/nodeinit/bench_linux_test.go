// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// measure runs the program on the node until the benchmark has enough runs, and reports medians
// for whole processes: time from start to exit, and peak memory.
func measure(b *testing.B, n *node, args ...string) {
	b.Helper()
	var times []time.Duration
	var peaks []int64
	for b.Loop() {
		cmd := n.Command(binary, args...)
		start := time.Now()
		require.NoError(b, cmd.Run())
		times = append(times, time.Since(start))
		peaks = append(peaks, int64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss))
	}
	slices.Sort(times)
	slices.Sort(peaks)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(peaks[len(peaks)/2])/1024, "MiB-peak-median")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkApplyUnchanged measures the cost of each restart of an agent's pod.
func BenchmarkApplyUnchanged(b *testing.B) {
	n := newNode(b)
	require.Zero(b, n.run(n.args("apply")...).code)
	measure(b, n, n.args("apply")...)
}

func BenchmarkMountCgroupUnchanged(b *testing.B) {
	n := newNode(b)
	require.Zero(b, n.run("mount-cgroup").code)
	measure(b, n, "mount-cgroup")
}

// BenchmarkPreflight measures what check looks for beforehand, of which most is trying the
// kernel's features.
func BenchmarkPreflight(b *testing.B) {
	measure(b, newNode(b), "check", "--only", "preflight")
}

// BenchmarkStart measures the share of starting a process on the node, before this program does
// anything.
func BenchmarkStart(b *testing.B) {
	measure(b, newNode(b), "--help")
}
