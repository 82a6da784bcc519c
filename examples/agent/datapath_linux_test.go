// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

func TestRDY4_MapsAreKeptAndTemplatesAreNot(t *testing.T) {
	n := bootstraptest.NewNode(t)
	const template, pin = "/run/agent/templates/deadbeef/program.o", "/sys/fs/bpf/agent/slipway_endpoints"
	on := func(f func() error) {
		t.Helper()
		require.NoError(t, n.Do(context.Background(), func(context.Context) error { return f() }))
	}
	compile := func() error {
		return errors.Join(os.MkdirAll("/run/agent/templates/deadbeef", 0o755), os.WriteFile(template, nil, 0o644))
	}
	var key, value = make([]byte, 16), make([]byte, 32)
	value[0] = 7
	withMap := func(f func(*ebpf.Map) error) {
		t.Helper()
		on(func() error {
			m, err := ebpf.LoadPinnedMap(pin, nil)
			if err != nil {
				return err
			}
			return errors.Join(f(m), m.Close())
		})
	}
	run := func(endpoints string, meanwhile func()) {
		t.Helper()
		on(compile)
		cmd, lines := start(t, n, "--maps=/sys/fs/bpf/agent", "--endpoints="+endpoints, "--templates=/run/agent/templates")
		eventually(t, lines, "health", func() bool { status, _, err := get(n, ""); return err == nil && status == 200 })
		require.False(t, exists(n, "/run/agent/templates"))
		on(compile)
		_, before, err := get(n, "")
		require.NoError(t, err)
		eventually(t, lines, "another run", func() bool { _, body, _ := get(n, ""); return body != before })
		require.True(t, exists(n, template), "it was made by this start")
		meanwhile()
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
	}
	run("8", func() { withMap(func(m *ebpf.Map) error { return m.Put(key, value) }) })
	run("8", func() { withMap(func(m *ebpf.Map) error { return m.Lookup(key, make([]byte, 32)) }) })
	run("16", func() {
		withMap(func(m *ebpf.Map) error {
			require.EqualValues(t, 16, m.MaxEntries())
			require.ErrorIs(t, m.Lookup(key, value), ebpf.ErrKeyNotExist)
			return nil
		})
	})
}
