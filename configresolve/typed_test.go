// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/internal/code"
)

func TestCFG11_Get(t *testing.T) {
	c := resolve(t, configresolve.Resolver{DenyKeys: []string{"denied"}, Sources: []configresolve.Source{
		static("base", values{"on": "true", "mtu": "many", "interval": "5m"}), static("node", values{"denied": "1"})}})

	on, err := configresolve.Get(c, "on", strconv.ParseBool)
	require.NoError(t, err)
	require.True(t, on)
	interval, err := configresolve.Get(c, "interval", time.ParseDuration)
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, interval)

	_, err = configresolve.Get(c, "mtu", strconv.Atoi)
	require.ErrorIs(t, err, strconv.ErrSyntax)
	require.Equal(t, "config.invalid", code.Of(err))
	require.ErrorContains(t, err, `config key "mtu" from static:base: `)

	_, err = configresolve.Get(c, "nothing", strconv.Atoi)
	require.ErrorIs(t, err, configresolve.ErrUnset)
	require.EqualError(t, err, `config key "nothing" is not set`)

	_, err = configresolve.Get(c, "denied", strconv.Atoi)
	require.ErrorIs(t, err, configresolve.ErrUnset)
	require.ErrorContains(t, err, `static:node gives it, but it is in the deny list`)
}

func TestCFG12_BlanksAroundAValueCountOnlyWhereItIsPassedOn(t *testing.T) {
	c := resolve(t, configresolve.Resolver{Sources: []configresolve.Source{static("files", values{"mtu": "1500\n", "interval": " 5m\n"})}})
	mtu, err := configresolve.Get(c, "mtu", strconv.Atoi)
	require.NoError(t, err)
	require.Equal(t, 1500, mtu)
	interval, err := configresolve.Get(c, "interval", time.ParseDuration)
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, interval)

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
