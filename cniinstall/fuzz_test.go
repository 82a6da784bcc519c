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

// Any configuration is either invalid or accepted by libcni with
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
		if errors.Is(err, cniinstall.ErrInvalid) {
			require.NotErrorIs(t, err, cniinstall.ErrPluginMissing)
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
