// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

// connectionOptions select how to reach the API server. Flags, defaults and meaning are
// those of Cilium's build-config, and further ones.
type connectionOptions struct {
	kubeconfig, apiServer       string
	apiServers                  []string
	retrySpread                 time.Duration
	enableK8s, firewallBypass   bool
	qps                         float32
	burst                       int
	connectTimeout, connectIdle time.Duration
}

func (o *connectionOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "k8s-kubeconfig-path", "", "kubeconfig file (default: the pod's service account)")
	f.StringSliceVar(&o.apiServers, "k8s-api-server-urls", nil, "URLs of API servers, tried in turn; https is assumed without http:// or https://")
	f.StringVar(&o.apiServer, "k8s-api-server", "", "URL of one API server; the older form of --k8s-api-server-urls")
	f.DurationVar(&o.retrySpread, "k8s-retry-spread", time.Minute, "nodes retry at a random time within this window when the API server was away; make it shorter in a small cluster")
	f.BoolVar(&o.enableK8s, "enable-k8s", true, "false: there is no API server, and a source in the cluster is an error")
	f.BoolVar(&o.firewallBypass, "enable-k8s-host-firewall-bypass", true, "mark packets to an API server that does not answer otherwise, to pass Cilium's host firewall; where NET_ADMIN is missing they go unmarked")
	f.Float32Var(&o.qps, "k8s-client-qps", 10, "requests a second to the API server; negative: no limit")
	f.IntVar(&o.burst, "k8s-client-burst", 20, "requests that may be sent at once before --k8s-client-qps applies")
	f.DurationVar(&o.connectTimeout, "k8s-client-connection-timeout", 30*time.Second, "time limit for a connection to the API server; 0: that of a request")
	f.DurationVar(&o.connectIdle, "k8s-client-connection-keep-alive", 30*time.Second, "time between two keep-alive probes of an idle connection to the API server; negative: none")
}

// complete interprets the flags as Cilium's programs do.
func (o *connectionOptions) complete() {
	o.apiServers = withScheme(append(words(o.apiServers), o.apiServer))
}

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

// inCluster reports whether all are sources that Cilium's build-config knows: others may
// have blanks in a path.
func inCluster(sources []string) bool {
	return !slices.ContainsFunc(sources, func(source string) bool {
		kind, _, _ := strings.Cut(source, ":")
		return kind != configresolve.KindConfigMap && kind != configresolve.KindNodeConfig && kind != configresolve.KindNode
	})
}

// connection is how the plan reaches the API server.
func (a *app) connection() kube.Connection {
	c := kube.Connection{
		Kubeconfig: a.kubeconfig, Servers: a.apiServers, UserAgent: "slipway-nodeinit",
		Spread: a.retrySpread, Wrap: a.logAttempts,
		QPS: cmp.Or(a.qps, rest.DefaultQPS), Burst: cmp.Or(a.burst, rest.DefaultBurst),
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
