// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"errors"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

// Any configuration is either invalid, with a position that exists, or accepted by libcni with
// only its plugins missing.
func FuzzValidate(f *testing.F) {
	for _, seed := range []string{
		"", "null", "[]", "{", agentConf, list(agentPlugin, `{"type":"portmap","capabilities":{"portMappings":true}}`),
		list("{}"), list(`{"type":"a"}`, "[]"), `{"name":"n","type":"p"}`, `{"name":"n","plugins":null}`,
		`{"name":"n","plugins":[{"type":"a"}],"plugins":[{}]}`, `{"name":"n","Plugins":[{"type":"a"}]}`,
		`{"cniVersion":"0.3.1","cniVersions":["9.9.9"],"name":"n","plugins":[{"type":"a"}]}`,
		`{"name":"n","loadOnlyInlinedPlugins":true}`, `{"name":"n","type":"p","plugins":[{"type":"a"}]}`,
	} {
		f.Add([]byte(seed))
	}
	empty := f.TempDir()
	f.Fuzz(func(t *testing.T, conf []byte) {
		err := cniinstall.Validate(t.Context(), conf, empty)
		var invalid *cniinstall.InvalidError
		if errors.As(err, &invalid) {
			require.NotErrorIs(t, err, cniinstall.ErrPluginMissing)
			requirePlace(t, invalid, conf)
			return
		}
		require.ErrorIs(t, err, cniinstall.ErrPluginMissing)
		list, err := libcni.NetworkConfFromBytes(conf)
		if err == nil && len(list.Plugins) > 0 {
			return
		}
		single, err := libcni.NetworkPluginConfFromBytes(conf)
		require.NoError(t, err)
		require.NotEmpty(t, single.Network.Type)
	})
}

func requirePlace(t *testing.T, e *cniinstall.InvalidError, conf []byte) {
	if e.Offset < 0 {
		require.Zero(t, e.Line)
		require.Zero(t, e.Column)
		require.EqualValues(t, -1, e.Offset)
		require.Equal(t, -1, e.Plugin)
		return
	}
	require.LessOrEqual(t, e.Offset, int64(len(conf)))
	require.Positive(t, e.Line)
	require.Positive(t, e.Column)
	line, column := 1, 1
	for _, b := range conf[:e.Offset] {
		if column++; b == '\n' {
			line, column = line+1, 1
		}
	}
	require.Equal(t, []int{line, column}, []int{e.Line, e.Column})
}
