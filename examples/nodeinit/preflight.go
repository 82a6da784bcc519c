// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/preflight"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
)

// stepPreflight comes first in a check, and is part of no other command.
const stepPreflight = "preflight"

// preflightNames are the names by which checks can be ignored.
var preflightNames = []string{"kernel", "routing", "networkd", "api-server", "cni", checkAccess}

// preflightStep looks for conditions that fail later, when the agent starts.
func (a *app) preflightStep(config *configresolve.Config, install cniinstall.Install) bootstrap.Step {
	checks := preflight.Checks{
		{Name: "kernel", Find: preflight.Cilium},
		{Name: "routing", Find: preflight.Tables(cleanup.Cilium())},
		{Name: "networkd", Find: preflight.Networkd},
		{Name: checkAccess, Find: a.access.Findings},
	}
	if replacesKubeProxy(config) {
		checks = append(checks, preflight.Check{Name: "api-server", Find: a.apiServerAddress(config)})
	}
	if install.Config == nil && !a.userManagedConf { // otherwise the step cni reports it
		install.BinDir, install.ConfDir = dirOr(a.cniBinDir, install.BinDir), dirOr(a.cniConfDir, install.ConfDir)
		checks = append(checks, preflight.Check{Name: "cni", Find: install.Findings})
	}
	checks = slices.DeleteFunc(checks, func(c preflight.Check) bool { return slices.Contains(a.ignorePreflight, c.Name) })
	return bootstrap.Step{Name: stepPreflight, Action: checks}
}

// apiServerAddress returns how the agent reaches the API server: as its configuration says,
// else as this program's flags say, else as each pod does.
func (a *app) apiServerAddress(config *configresolve.Config) func(context.Context) ([]error, error) {
	var servers, services []string
	for _, key := range []string{"k8s-api-server-urls", "k8s-api-server"} {
		if len(servers) == 0 {
			servers = strings.FieldsFunc(interpreted(config, key), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
		}
	}
	if len(servers) == 0 {
		servers = a.apiServers
	}
	if len(servers) == 0 && a.kubeconfig != "" {
		connection, err := a.connection().Config()
		if err != nil {
			return answered{err: err}.Findings
		}
		servers = []string{connection.Host}
	}
	if host, ok := a.getenv("KUBERNETES_SERVICE_HOST"); ok && host != "" && len(servers) == 0 {
		servers = []string{host}
	}
	if service, ok := a.getenv("KUBERNETES_PORT_443_TCP_ADDR"); ok && service != "" {
		services = []string{service}
	}
	return preflight.APIServer(servers, services)
}
