// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// The cost of a guard that watches 28 files while nothing happens.
func BenchmarkCNI7_Idle(b *testing.B) {
	stop := guardOf28(b)
	<-time.After(time.Second) // its first pass reads the files
	before, begin := processorTime(b), time.Now()
	for b.Loop() {
		<-time.After(time.Second) // the measured second
	}
	used, took := processorTime(b)-before, time.Since(begin)
	stop()
	b.ReportMetric(float64(used.Microseconds())/took.Seconds(), "processor-µs/s")
}

// guardOf28 guards 28 plugins and a configuration until stop is called.
func guardOf28(b *testing.B) (stop func()) {
	plugins, dir := fstest.MapFS{}, b.TempDir()
	for k := range 26 {
		plugins[fmt.Sprint("plugin", k)] = &fstest.MapFile{Data: []byte("#!/bin/sh\n")}
	}
	for _, name := range []string{"cilium-cni", "loopback"} {
		plugins[name] = &fstest.MapFile{Data: []byte(script("0.3.1", "1.0.0"))}
	}
	i := recorded{Book: testledger.Open(b, filepath.Join(dir, "state")), Install: cniinstall.Install{
		Plugins: plugins, BinDir: filepath.Join(dir, "bin"), Config: agentOf(cniinstall.Agent{}), ConfDir: filepath.Join(dir, "net.d"), ConfName: "05-cilium.conflist",
	}}
	require.NoError(b, i.Apply(b.Context()))
	ctx, cancel := context.WithCancel(i.with(b.Context()))
	ended := make(chan error)
	go func() { ended <- cniinstall.Guard{Install: i.Install, Step: step}.Run(ctx) }()
	return func() {
		cancel()
		require.ErrorIs(b, <-ended, context.Canceled)
	}
}

// processorTime is the processor time this process has used.
func processorTime(b *testing.B) time.Duration {
	var used unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
