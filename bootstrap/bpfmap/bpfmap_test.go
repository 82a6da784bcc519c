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

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bpfmap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

var (
	_ bootstrap.Recorder = bpfmap.Pinned{}
	_ bootstrap.Hosted   = bpfmap.Pinned{}
	_ bootstrap.Placed   = bpfmap.Pinned{}
)

func TestWhatCannotBePinned(t *testing.T) {
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
		_, err := p.Check(t.Context())
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, p.Apply(t.Context()), want)
	}
	p := bpfmap.Pinned{Dir: "/nowhere/at/all", Maps: []*ebpf.MapSpec{good}}
	if runtime.GOOS != "linux" {
		require.ErrorIs(t, p.Apply(t.Context()), errors.ErrUnsupported)
	}
}

func TestWhatCannotHaveBeenRecorded(t *testing.T) {
	good := journal.Entry{Kind: "bpfmap/pin", Object: "/sys/fs/bpf/agent/a", Boot: "b", After: journal.State{Type: "map", Value: "Hash", File: "7"}}
	require.NoError(t, bpfmap.Handler{}.Owns(good))
	for want, wrong := range map[string]func(*journal.Entry){
		"is not an absolute path below /": func(e *journal.Entry) { e.Object = "/sys/../etc" },
		"is not a map's":                  func(e *journal.Entry) { e.After.Value = "" },
		"names no boot":                   func(e *journal.Entry) { e.Boot = "" },
	} {
		e := good
		wrong(&e)
		require.ErrorContains(t, bpfmap.Handler{}.Owns(e), want)
	}
}
