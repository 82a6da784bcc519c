// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/internal/code"
)

func TestCFG11_WhatIsWrongNamesTheKeyAndItsSource(t *testing.T) {
	c := resolve(t, configresolve.Resolver{DenyKeys: []string{"denied"}, Sources: []configresolve.Source{
		static("base", values{"on": "true\n", "mtu": "many", "interval": " 5m\n"}), static("node", values{"denied": "1"})}})
	var v struct {
		On       bool          `config:"on"`
		Interval time.Duration `config:"interval"`
		MTU      int           `config:"mtu"`
		Nothing  int           `config:"nothing,required"`
		Denied   int           `config:"denied,required"`
	}
	err := configresolve.Decode(c, &v)
	require.True(t, v.On)
	require.Equal(t, 5*time.Minute, v.Interval)
	require.Equal(t, "config.invalid", code.Of(err))
	require.EqualError(t, err, `config key "mtu" from static:base: "many" does not fit into a field of the type int
config key "nothing" is not set
config key "denied" is not set (static:node gives it, but it is in the deny list)`)
}

func TestCFG12_BlanksAroundAValueCountOnlyWhereItIsPassedOn(t *testing.T) {
	c := resolve(t, configresolve.Resolver{Sources: []configresolve.Source{static("files", values{"mtu": "1500\n"})}})
	var v struct {
		MTU int `config:"mtu"`
	}
	require.NoError(t, configresolve.Decode(c, &v))
	require.Equal(t, 1500, v.MTU)
	require.Equal(t, "1500\n", c.Data()["mtu"])
}

func TestCFG11_Unknown(t *testing.T) {
	known := []string{"enable-ipv4", "enable-ipv6", "mtu", "debug", "routing-mode"}
	c := resolve(t, configresolve.Resolver{Sources: []configresolve.Source{static("s", values{
		"enable-ipv4": "", "enable-ipv5": "", "enabel-ipv6": "", "routing_mode": "", "mut": "", "zebra-crossing": "", "d": "",
	})}})
	nearest := map[string]string{}
	for _, u := range c.Unknown(nil, known...) {
		nearest[u.Key] = strings.TrimPrefix(u.Reason, "is not known")
		require.Equal(t, ref("s"), u.Source)
	}
	require.Equal(t, map[string]string{
		"enable-ipv5": ` ("enable-ipv4" is)`, "enabel-ipv6": ` ("enable-ipv6" is)`, "routing_mode": ` ("routing-mode" is)`,
		"mut": ` ("mtu" is)`, "zebra-crossing": "", "d": "",
	}, nearest)
	require.Len(t, c.Unknown(nil), 7, "with no known keys every key is unknown")
	require.Empty(t, resolve(t, configresolve.Resolver{}).Unknown(nil, known...))
}
