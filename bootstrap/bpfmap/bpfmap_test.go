// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfmap_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bpfmap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

var _ ledger.Wanter = bpfmap.Pinned{}

func TestRDY4_WhatCannotBePinned(t *testing.T) {
	good := &ebpf.MapSpec{Name: "good"}
	for want, p := range map[string]bpfmap.Pinned{
		`"agent" is not the absolute path of a directory`: {Dir: "agent", Maps: []*ebpf.MapSpec{good}},
		`"/" is not the absolute path of a directory`:     {Dir: "/", Maps: []*ebpf.MapSpec{good}},
		"no maps given":             {Dir: "/nowhere"},
		"map 2 of 2 is nil":         {Dir: "/nowhere", Maps: []*ebpf.MapSpec{good, nil}},
		`map "": want a name`:       {Dir: "/nowhere", Maps: []*ebpf.MapSpec{{}}},
		`map "a.b": want a name`:    {Dir: "/nowhere", Maps: []*ebpf.MapSpec{{Name: "a.b"}}},
		`map "../a": want a name`:   {Dir: "/nowhere", Maps: []*ebpf.MapSpec{{Name: "../a"}}},
		"want a name of at most":    {Dir: "/nowhere", Maps: []*ebpf.MapSpec{{Name: strings.Repeat("a", 256)}}},
		`map "good" is given twice`: {Dir: "/nowhere", Maps: []*ebpf.MapSpec{good, good}},
	} {
		_, err := ledger.Check(t.Context(), p)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, ledger.Apply(t.Context(), p), want)
	}
	p := bpfmap.Pinned{Dir: "/nowhere/at/all", Maps: []*ebpf.MapSpec{good}}
	if runtime.GOOS != "linux" {
		require.ErrorIs(t, ledger.Apply(t.Context(), p), errors.ErrUnsupported)
	}
}

func TestSEC3_WhatCannotHaveBeenRecordedIsNotObeyed(t *testing.T) {
	for _, k := range bpfmap.Kinds() {
		require.NoError(t, k.Owns("/sys/fs/bpf/agent/a"))
		for _, path := range []string{"/", "agent/a", "/sys/../etc"} {
			require.ErrorContains(t, k.Owns(path), "is not an absolute path below /")
		}
	}
}
