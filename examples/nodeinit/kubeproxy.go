// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/gate"
	"github.com/slipway-dev/slipway/configresolve"
)

func (a *app) kubeProxyFlags(f *pflag.FlagSet) {
	f.DurationVar(&a.kubeProxyWait, "wait-for-kube-proxy", 0, "how long to wait until kube-proxy has written its rules, in nf_tables or legacy iptables, unless the configuration makes the agent replace kube-proxy (needs NET_ADMIN); 0: do not wait")
}

// kubeProxyGates wait for kube-proxy's rules, if --wait-for-kube-proxy asks for it.
func (a *app) kubeProxyGates(config *configresolve.Config) []bootstrap.Step {
	if a.kubeProxyWait <= 0 {
		return nil
	}
	g := gate.KubeProxy()
	g.Timeout = a.kubeProxyWait
	step := bootstrap.Step{Name: "kube-proxy", Action: g}
	if replacesKubeProxy(config) {
		step.Skip, step.SkipReason = true, "the agent replaces kube-proxy: kube-proxy-replacement"
	}
	return []bootstrap.Step{step}
}

// replacesKubeProxy reports the setting that Cilium's chart checks before it waits for
// kube-proxy.
func replacesKubeProxy(config *configresolve.Config) bool {
	if config == nil {
		return false
	}
	return slices.Contains([]string{"true", "strict"}, interpreted(config, "kube-proxy-replacement"))
}
