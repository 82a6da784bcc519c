// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package preflight

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/code"
)

// APIServer returns a check whether an agent that replaces kube-proxy is configured to reach the
// API server through a Service. Without kube-proxy it never can, because the agent itself must
// first set up that route. The finding is a warning, because kube-proxy's leftover rules
// may still work for a while.
// What helps is the address of the API server's own endpoint: the agent intercepts that of a
// load balancer too if it is a service of its cluster, and keeps it from the node until that
// reboots.
//
// Servers are the URLs, or the addresses, by which the agent reaches the API server. Nothing is
// found if one of them is not a Service's, or if there are none. Services are addresses of the
// API server's Service. A pod finds one in its environment, as KUBERNETES_PORT_443_TCP_ADDR,
// even if its KUBERNETES_SERVICE_HOST has been changed. An address does not tell that it is a
// load balancer's of this cluster; the caller may know. Names below "default.svc" always count
// as a service's. Addresses and names are compared, and none is resolved.
func APIServer(servers, services []string) func(context.Context) (findings []error, err error) {
	return func(context.Context) ([]error, error) {
		isElsewhere := func(server string) bool { return !isService(host(server), services) }
		if len(servers) == 0 || slices.ContainsFunc(servers, isElsewhere) {
			return nil, nil
		}
		return []error{code.Errorf(code.PreflightServiceAddress, "the agent is to reach the API server at %s, which is the address of a service, and the agent itself implements services: on a node without kube-proxy it waits forever (give it the address of the endpoint itself, which kubectl get endpointslices lists for the service kubernetes, by k8sServiceHost and k8sServicePort of Cilium's chart; never that of a load balancer that is a service of this cluster, which the agent intercepts too, and a node is then locked out until it reboots)",
			strings.Join(servers, ", "))}, nil
	}
}

func isService(host string, services []string) bool {
	if name := strings.TrimSuffix(strings.ToLower(host), "."); name == "kubernetes" || name == "kubernetes.default" || strings.HasPrefix(name, "kubernetes.default.svc") {
		return true
	}
	return slices.ContainsFunc(services, func(service string) bool { return same(host, service) })
}

// host returns the host of a URL, or of an address with a port.
func host(server string) string {
	if u, err := url.Parse(server); err == nil && u.Host != "" {
		return u.Hostname()
	}
	if h, _, err := net.SplitHostPort(server); err == nil {
		return h
	}
	return strings.Trim(server, "[]")
}

// same reports whether both are the same address, however it is written.
func same(a, b string) bool {
	x, errA := netip.ParseAddr(a)
	y, errB := netip.ParseAddr(b)
	if errA != nil || errB != nil {
		return a != "" && a == b
	}
	return x.Unmap() == y.Unmap()
}
