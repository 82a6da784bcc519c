// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
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

// The plugins beside the agent's in a template.
const (
	portmapPlugin    = `{"type": "portmap", "capabilities": {"portMappings": true}}`
	awsPortmapPlugin = `{"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}`
	flannelPlugin    = `{"type": "flannel", "delegate": {"hairpinMode": true, "isDefaultGateway": true}}`
	awsPlugin        = `{"name": "aws-cni", "type": "aws-cni", "vethPrefix": "eni"}`
)

// template returns the chain that includes the agent's plugin.
func (a Agent) template() ([]any, error) {
	var before, after []json.RawMessage
	switch a.Mode {
	case "", modeNone:
	case modePortmap:
		after = raw(portmapPlugin)
	case modeFlannel:
		before = raw(flannelPlugin, portmapPlugin)
	case modeAWS:
		before = raw(awsPlugin, awsPortmapPlugin)
	case modeGenericVeth:
		if len(a.Base) == 0 {
			return nil, errors.New("mode generic-veth completes other plugins: name them, or chain onto a configuration on the node")
		}
	default:
		return nil, fmt.Errorf("unknown mode %q, known are %q", a.Mode,
			[]string{modeNone, modePortmap, modeFlannel, modeAWS, modeGenericVeth})
	}
	if a.Base != nil {
		before = a.Base
	}
	var chain []any
	for _, p := range before {
		chain = append(chain, p)
	}
	chain = append(chain, a.entry())
	for _, p := range after {
		chain = append(chain, p)
	}
	return chain, nil
}

func raw(plugins ...string) []json.RawMessage {
	var all []json.RawMessage
	for _, p := range plugins {
		all = append(all, json.RawMessage(p))
	}
	return all
}

// chainingMode is the mode passed to the agent's plugin. If it comes first, as in
// portmap, it is not chained.
func (a Agent) chainingMode() string {
	if a.alone() || a.Mode == modePortmap {
		return ""
	}
	return a.Mode
}
