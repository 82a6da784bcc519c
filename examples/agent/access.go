// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
)

const stepAccess = "plugin-kubeconfig"

// accessSteps come before the CNI configuration: the files by which plugins reach the
// cluster must be there when the first one runs.
func (a *agent) accessSteps() []bootstrap.Step {
	if a.cluster.pluginKubeconfig == "" {
		return nil
	}
	config := a.clients.config
	return []bootstrap.Step{{Name: stepAccess, Prepare: hostpath.Kubeconfig{
		Path: a.cluster.pluginKubeconfig, Server: config.Host,
		CA: config.CAData, CAFile: config.CAFile, TokenFile: config.BearerTokenFile,
	}.Prepare}}
}
