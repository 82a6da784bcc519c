// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/internal/input"
)

// Config is the configuration to publish: a [Whole], an [Agent] or a [Chained]. Each Check,
// Apply and Advise renders it once. A program that makes its own does that beforehand, such
// as in Step.Prepare, and passes it as a [Whole].
type Config interface {
	renderIn(ctx context.Context, f directory) ([]byte, error)
}

// Whole is a complete configuration, which is published byte for byte. It is valid
// if libcni would load and run it: its plugins may be in the directory of the
// network's name beside it (libcni.NetworkConfFromFile), and no key is required or
// forbidden beyond libcni's rules.
type Whole []byte

func (w Whole) renderIn(context.Context, directory) ([]byte, error) { return slices.Clone(w), nil }

// isFixed reports whether c always renders the same, independently of the node.
func isFixed(c Config) bool {
	_, isChained := c.(Chained)
	return !isChained
}

// ReadWhole reads a complete configuration from the regular file at path, such as a
// key of a mounted ConfigMap, or a configuration that [Install] has published. Its
// size may be up to 1 MiB. It is opened without blocking, so that no FIFO delays
// the caller. It is read at once, in the calling thread's mount namespace, whereas
// a plan renders in the host's.
func ReadWhole(ctx context.Context, path string) (Whole, error) {
	content, err := input.ReadFile(ctx, path, input.MaxNetwork)
	if err != nil {
		return nil, fmt.Errorf("read the CNI configuration: %w", err)
	}
	return content, nil
}

// Agent is a configuration with an agent's plugin, alone or chained with the
// plugins that Mode selects. Its keys and templates are those of Cilium
// ([CiliumAgent]), which the plugins of other agents may not know: for these, use
// [Whole].
type Agent struct {
	Network    string // name of the network; zero: the mode's name, but with "none" it must be given
	CNIVersion string // zero: 1.0.0, as Cilium's since 1.20; 0.3.1 before. From 1.1.0 on, runtimes may ask the plugins for their STATUS
	Plugin     string // must be given
	Debug      bool   // enable-debug
	LogFile    string // log-file, on the node; zero: none

	// Mode selects the plugins with which the agent's is chained, by the names of
	// Cilium's "cni-chaining-mode". If empty or "none", it is alone. With "portmap" it
	// comes before portmap, with "flannel" after flannel and portmap, with "aws-cni"
	// after aws-cni and portmap. With "generic-veth" it completes any other plugins: those
	// of a configuration that is already on the node ([Chained]), or given ([Chain]).
	Mode string
}

// defaultCNIVersion is the version in the templates of Cilium's agent
// (daemon/cmd/cni/config.go), in 1.20.2; in 1.18.3 and 1.19.7 it is 0.3.1. Its
// plugin speaks both, and 1.1.0, in each.
const defaultCNIVersion = "1.0.0"

type agentList struct {
	CNIVersion string `json:"cniVersion"`
	Name       string `json:"name"`
	Plugins    []any  `json:"plugins"`
}

type agentPlugin struct {
	Type    string `json:"type"`
	Mode    string `json:"chaining-mode,omitempty"`
	Debug   bool   `json:"enable-debug"`
	LogFile string `json:"log-file,omitempty"`
}

// renderIn returns the configuration as a list (.conflist). A string that is not
// UTF-8 cannot be represented in JSON, and is an error.
func (a Agent) renderIn(context.Context, directory) ([]byte, error) {
	chain, err := a.template()
	if err == nil {
		err = a.validate()
	}
	network := a.Network
	if network == "" && !a.alone() {
		network = a.Mode
	}
	if err == nil && network == "" {
		err = errors.New("no network name given")
	}
	if err != nil {
		return nil, fmt.Errorf("render the CNI configuration: %w", err)
	}
	return encode(agentList{CNIVersion: cmp.Or(a.CNIVersion, defaultCNIVersion), Name: network, Plugins: chain})
}

// entry is the agent's own entry in the list of plugins.
func (a Agent) entry() agentPlugin {
	return agentPlugin{
		Type:    a.Plugin,
		Mode:    a.chainingMode(),
		Debug:   a.Debug,
		LogFile: a.LogFile,
	}
}

func (a Agent) alone() bool { return a.Mode == "" || a.Mode == modeNone }

func (a Agent) validate() error {
	if a.Plugin == "" {
		return errors.New("no agent plugin given")
	}
	for _, s := range []string{a.Network, a.CNIVersion, a.Plugin, a.LogFile, a.Mode} {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%q is not UTF-8", s)
		}
	}
	return nil
}

// encode returns v as JSON, escaping only the characters that must be.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return out.Bytes(), err
}
