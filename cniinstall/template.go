// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// The modes of an [Agent].
const (
	modeNone        = "none"
	modePortmap     = "portmap"
	modeFlannel     = "flannel"
	modeAWS         = "aws-cni"
	modeGenericVeth = "generic-veth"
)

// beside are the plugins with which each mode chains the agent's, which comes where agentsPlace is.
var beside = map[string][]string{
	modeNone:    {agentsPlace},
	modePortmap: {agentsPlace, `{"type": "portmap", "capabilities": {"portMappings": true}}`},
	modeFlannel: {
		`{"type": "flannel", "delegate": {"hairpinMode": true, "isDefaultGateway": true}}`,
		`{"type": "portmap", "capabilities": {"portMappings": true}}`, agentsPlace,
	},
	modeAWS: {
		`{"name": "aws-cni", "type": "aws-cni", "vethPrefix": "eni"}`,
		`{"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}`, agentsPlace,
	},
}

const agentsPlace = ""

// template returns the chain that includes the agent's plugin.
func (a Agent) template() (chain []any, err error) {
	if a.Mode == modeGenericVeth {
		return nil, errors.New("mode generic-veth completes other plugins: chain onto a configuration on the node, or into one that is given whole")
	}
	plugins, known := beside[cmp.Or(a.Mode, modeNone)]
	if !known {
		return nil, fmt.Errorf("unknown mode %q, known are %q", a.Mode,
			[]string{modeNone, modePortmap, modeFlannel, modeAWS, modeGenericVeth})
	}
	for _, p := range plugins {
		if p == agentsPlace {
			chain = append(chain, a.entry())
		} else {
			chain = append(chain, json.RawMessage(p))
		}
	}
	return chain, nil
}

// chainingMode is the mode passed to the agent's plugin. If it comes first, as in
// portmap, it is not chained.
func (a Agent) chainingMode() string {
	if a.alone() || a.Mode == modePortmap {
		return ""
	}
	return a.Mode
}
