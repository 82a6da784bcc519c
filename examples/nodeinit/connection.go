// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/configresolve/kube"
)

// withScheme is the servers that are named, as URLs.
func withScheme(servers []string) (urls []string) {
	for _, server := range servers {
		switch {
		case server == "":
		case strings.Contains(server, "://"):
			urls = append(urls, server)
		default:
			urls = append(urls, "https://"+server)
		}
	}
	return urls
}

// words splits a list that was given as one value, at its blanks: the chart's values have
// some like that.
func words(list []string) []string {
	if len(list) == 1 {
		return strings.Fields(list[0])
	}
	return list
}

// inClusterWords is words, if all are sources that Cilium's build-config knows: others may
// have blanks in a path.
func inClusterWords(sources []string) []string {
	for _, source := range words(sources) {
		kind, _, _ := strings.Cut(source, ":")
		if kind != "config-map" && kind != "cilium-node-config" && kind != "node" {
			return sources
		}
	}
	return words(sources)
}

// connection is how the plan reaches the API server.
func (a *app) connection() kube.Connection {
	c := kube.Connection{
		Kubeconfig: a.kubeconfig, Servers: a.apiServers, UserAgent: "slipway-nodeinit",
		Spread: a.retrySpread,
		QPS:    cmp.Or(a.qps, rest.DefaultQPS), Burst: cmp.Or(a.burst, rest.DefaultBurst),
		DialTimeout: cmp.Or(a.connectTimeout, -1), KeepAlive: a.connectIdle, Dialed: a.logDialed,
	}
	if a.firewallBypass {
		c.Mark = kube.Cilium().Mark
	}
	return c
}

// logDialed logs a connection that was not made at once.
func (a *app) logDialed(at kube.Attempt) {
	log := a.logger().With("address", at.Address)
	switch {
	case at.Refused != nil:
		log.Debug("the packets to the API server have no mark", "error", at.Refused)
	case at.Err != nil:
		log.Debug("connect to the API server", "marked", at.Marked, "error", at.Err)
	case at.Marked:
		log.Info("the API server answers only with Cilium's mark: a host firewall policy may not allow it")
	}
}
