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

// Agent is the configuration of an agent, alone or among the plugins that its
// Mode says. Its keys, defaults and templates are those of Cilium, which other
// agents' plugins do not know: for these give the configuration [Whole].
type Agent struct {
	Network    string // name of the network; zero: cilium, or the mode's name
	CNIVersion string // zero: 0.3.1
	Plugin     string // zero: cilium-cni
	Debug      bool   // enable-debug
	LogFile    string // log-file, on the node; zero: /var/run/cilium/cilium-cni.log

	// Mode says with which plugins the agent's works. Zero, ModeNone: alone.
	// ModePortmap: before portmap. ModeFlannel: after flannel and portmap.
	// ModeAWS: after aws-cni and portmap. ModeGenericVeth: after Base, which
	// it needs. To join a configuration that is on the node, see [Chained].
	Mode string

	// Base are the plugins before the agent's, each a JSON object; nil: those
	// of the mode.
	Base []json.RawMessage
}

type agentList struct {
	CNIVersion string `json:"cniVersion"`
	Name       string `json:"name"`
	Plugins    []any  `json:"plugins"`
}

type agentPlugin struct {
	Type    string `json:"type"`
	Mode    string `json:"chaining-mode,omitempty"`
	Debug   bool   `json:"enable-debug"`
	LogFile string `json:"log-file"`
}

// Render returns the configuration as a list (.conflist). A string that is not
// UTF-8 cannot be said in JSON and is an error.
func (a Agent) Render(context.Context, string) ([]byte, error) {
	out, err := a.render()
	if err != nil {
		return nil, fmt.Errorf("render the CNI configuration: %w", err)
	}
	return out, nil
}

func (a Agent) render() ([]byte, error) {
	chain, err := a.template()
	if err != nil {
		return nil, err
	}
	name := "cilium"
	if a.Mode != "" && a.Mode != ModeNone {
		name = a.Mode
	}
	if err := a.checkStrings(); err != nil {
		return nil, err
	}
	return encode(agentList{CNIVersion: cmp.Or(a.CNIVersion, "0.3.1"), Name: cmp.Or(a.Network, name), Plugins: chain})
}

// entry is the agent's own plugin in the list.
func (a Agent) entry() agentPlugin {
	return agentPlugin{
		Type:    cmp.Or(a.Plugin, "cilium-cni"),
		Mode:    a.chainingMode(),
		Debug:   a.Debug,
		LogFile: cmp.Or(a.LogFile, "/var/run/cilium/cilium-cni.log"),
	}
}

func (a Agent) checkStrings() error {
	for _, s := range []string{a.Network, a.CNIVersion, a.Plugin, a.LogFile, a.Mode} {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%q is not UTF-8", s)
		}
	}
	return nil
}

// encode gives v as JSON, with no character escaped that need not be.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return out.Bytes(), err
}
