// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package installers_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/installers"
)

// aws is the installer in a container with this environment.
func (n *node) aws(env map[string]string) installers.AWS {
	n.t.Helper()
	image(n.t, n.Image, installers.NewAWSImage())
	maps.Copy(n.Env, env)
	return installers.AWS{Setting: n.Setting, PrimaryIP: func(ipv4 bool) (string, error) {
		return map[bool]string{true: "10.0.0.0", false: "2600::"}[ipv4], nil
	}}
}

// awsPlugins installs, and returns the plugins of the installed list.
func (n *node) awsPlugins(env map[string]string) (plugins []map[string]any) {
	n.t.Helper()
	p, done, err := n.aws(env).Plan(n.t.Context())
	require.NoError(n.t, err)
	applied(n.t, p)
	require.NoError(n.t, done())
	var list struct{ Plugins []map[string]any }
	require.NoError(n.t, json.Unmarshal([]byte(n.content(conf+"/10-aws.conflist")), &list))
	return list.Plugins
}

// types are those of the plugins.
func types(plugins []map[string]any) (all []string) {
	for _, p := range plugins {
		all = append(all, p["type"].(string))
	}
	return all
}

func TestAWSCases(t *testing.T) {
	testns.Root(t)
	from := upstream{"AWS VPC CNI", "cmd/aws-vpc-cni/main_test.go", "b52188387f2e"}
	const bandwidth, tuning = "ENABLE_BANDWIDTH_PLUGIN", "DISABLE_POD_V6"
	always := []string{"aws-cni", "egress-cni", "portmap"}
	generated := func(name string, env map[string]string, more ...string) row {
		return row{name: name, test: func(n *node) {
			plugins := n.awsPlugins(env)
			require.Equal(n.t, append(append([]string{}, always...), more...), types(plugins))
			require.Equal(n.t, true, plugins[2]["snat"], "an added plugin removes nothing")
		}}
	}
	egress := func(name, mtu string, env map[string]string) row {
		return row{name: name, test: func(n *node) {
			env["POD_MTU"] = mtu
			plugins := n.awsPlugins(env)
			require.Equal(n.t, "egress-cni", plugins[1]["type"])
			require.Equal(n.t, mtu, plugins[1]["mtu"])
		}}
	}
	rebuilt(t, from, []row{
		generated("TestGenerateJSON", nil),
		generated("TestGenerateJSONPlusBandwidth", map[string]string{bandwidth: "true"}, "bandwidth"),
		generated("TestGenerateJSONPlusTuning", map[string]string{tuning: "true"}, "tuning"),
		generated("TestGenerateJSONPlusBandwidthAndTuning", map[string]string{bandwidth: "true", tuning: "true"}, "bandwidth", "tuning"),
		egress("TestEgressCNIPluginIPv4EgressTakesMTUEnvVar", "5000", map[string]string{"ENABLE_V4_EGRESS": "true"}),
		egress("TestEgressCNIPluginIPv6EgressTakesMTUEnvVar", "8000", map[string]string{"ENABLE_V6_EGRESS": "true"}),
		{name: "TestMTUValidation", own: true, test: awsMTUs},
	})
}

// awsMTUs are the groups of the case, by their invalid variables.
func awsMTUs(n *node) {
	const link, pod, ipv6 = "AWS_VPC_ENI_MTU", "POD_MTU", "ENABLE_IPv6"
	for _, c := range []struct {
		says  string
		env   map[string]string
		wrong []string
	}{
		{"by default", nil, nil},
		{"non-integer values", map[string]string{link: "true", pod: "abc"}, []string{link, pod}},
		{"within the range of IPv4", map[string]string{link: "5000", pod: "3000"}, nil},
		{"outside of the range of IPv4", map[string]string{link: "10000", pod: "500"}, []string{link, pod}},
		{"within the range of IPv6", map[string]string{ipv6: "true", link: "5000", pod: "3000"}, nil},
		{"outside of the range of IPv6", map[string]string{ipv6: "true", link: "10000", pod: "1200"}, []string{link, pod}},
	} {
		clear(n.Env)
		p, done, err := n.aws(c.env).Plan(n.t.Context())
		if len(c.wrong) == 0 {
			require.NoError(n.t, err, c.says)
			_, err = p.Apply(n.t.Context())
			require.NoError(n.t, err, c.says)
			require.NoError(n.t, done())
			continue
		}
		for _, name := range c.wrong {
			require.ErrorContains(n.t, err, name, c.says)
		}
	}
}
