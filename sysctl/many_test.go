// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/sysctl"
)

func TestPLAN6_TheValuesOfThousandsOfLinksComeBack(t *testing.T) {
	var links []string
	for i := range 2_500 {
		links = append(links, fmt.Sprintf("lxc%012d", i))
	}
	n := newNode(t, links...)
	for _, link := range links[1:] {
		n.PutValue("net.ipv4.conf."+link+".rp_filter", "2")
	}
	before := n.Values()
	d := n.dropIn()
	d.Settings = append(d.Settings, sysctl.Forwarding()...)
	require.NoError(t, d.Apply(t.Context()))
	require.Equal(t, "0", n.Values()["net.ipv4.conf."+links[1]+".rp_filter"])
	require.Empty(t, check(t, d))
	require.NoError(t, d.Revert(t.Context()))
	require.Equal(t, before, n.Values())
	require.NoDirExists(t, n.state())
}
