// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Config gives the configuration to publish. It is asked once in each Check
// and Apply, in the namespaces these run in; dir is the folder that the
// configuration goes to, for one that builds on what is there.
type Config interface {
	Render(ctx context.Context, dir string) ([]byte, error)
}

// Whole is a configuration given by the user. It is published byte for byte.
type Whole []byte

// Render returns a copy of the configuration.
func (w Whole) Render(context.Context, string) ([]byte, error) { return slices.Clone(w), nil }

// Agent is the configuration of an agent that needs no other plugin. Its keys
// and defaults are those of Cilium, which other agents' plugins do not know:
// for these give the configuration [Whole].
type Agent struct {
	Network    string // name of the network; zero: cilium
	CNIVersion string // zero: 0.3.1
	Plugin     string // zero: cilium-cni
	Debug      bool   // enable-debug
	LogFile    string // log-file, on the node; zero: /var/run/cilium/cilium-cni.log
}

type agentList struct {
	CNIVersion string        `json:"cniVersion"`
	Name       string        `json:"name"`
	Plugins    []agentPlugin `json:"plugins"`
}

type agentPlugin struct {
	Type    string `json:"type"`
	Debug   bool   `json:"enable-debug"`
	LogFile string `json:"log-file"`
}

// Render returns the configuration as a list (.conflist) of one plugin. A
// string that is not UTF-8 cannot be said in JSON and is an error.
func (a Agent) Render(context.Context, string) ([]byte, error) {
	for _, s := range []string{a.Network, a.CNIVersion, a.Plugin, a.LogFile} {
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("render the CNI configuration: %q is not UTF-8", s)
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(agentList{
		CNIVersion: cmp.Or(a.CNIVersion, "0.3.1"),
		Name:       cmp.Or(a.Network, "cilium"),
		Plugins: []agentPlugin{{
			Type:    cmp.Or(a.Plugin, "cilium-cni"),
			Debug:   a.Debug,
			LogFile: cmp.Or(a.LogFile, "/var/run/cilium/cilium-cni.log"),
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("render the CNI configuration: %w", err)
	}
	return out.Bytes(), nil
}
