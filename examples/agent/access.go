// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/configresolve"
)

const stepAccess = "plugin-kubeconfig"

// accessSteps come before the CNI configuration: the files by which plugins reach the
// cluster must be there when the first one runs.
func (a *agent) accessSteps() []bootstrap.Step {
	if a.cluster.pluginKubeconfig == "" {
		return nil
	}
	return []bootstrap.Step{{Name: stepAccess, Prepare: a.access}}
}

// access is a kubeconfig with which plugins on the host act as this agent. The kubelet renews
// the token in the container, so it is read again for each run.
func (a *agent) access(ctx context.Context) (ledger.Wanter, error) {
	config := a.clients.config
	ca, err := orFile(ctx, config.CAData, config.CAFile)
	if err != nil {
		return nil, err
	}
	token, err := orFile(ctx, []byte(config.BearerToken), config.BearerTokenFile)
	if err != nil {
		return nil, err
	}
	if len(token) == 0 {
		return nil, errors.New("--plugin-kubeconfig: this agent's access to the cluster uses no token that plugins could use too")
	}
	type object = map[string]any
	cluster := object{"server": config.Host}
	if len(ca) > 0 {
		cluster["certificate-authority-data"] = ca
	}
	kubeconfig, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "agent",
		"clusters": []object{{"name": "cluster", "cluster": cluster}},
		"users":    []object{{"name": "agent", "user": object{"token": strings.TrimSpace(string(token))}}},
		"contexts": []object{{"name": "agent", "context": object{"cluster": "cluster", "user": "agent"}}},
	})
	return hostpath.Content{Path: a.cluster.pluginKubeconfig, Bytes: kubeconfig, Secret: true, Parents: true}, err
}

// orFile returns the content of the file, if one is named; otherwise the data given.
func orFile(ctx context.Context, data []byte, path string) ([]byte, error) {
	if path == "" {
		return data, nil
	}
	return configresolve.ReadFile(ctx, path)
}
