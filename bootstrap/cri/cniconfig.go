// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"encoding/json"
	"fmt"
	"path"
)

// cniConfig is containerd's info["cniconfig"]: ConfigResult of
// github.com/containerd/go-cni, in one shape from containerd 1.6 to 2.1.
type cniConfig struct {
	PluginDirs    []string
	PluginConfDir string
	Networks      []struct {
		IFName string
		Config network
	}
}

// maxElements bounds the elements of an answer. Each may take a hundred times the memory
// of its two or three bytes of JSON, or five of protobuf. A node has a few networks, of a
// few plugins each, and some hundreds of sandboxes.
const maxElements = 20_000

var errCrowded = fmt.Errorf("it has more than %d elements", maxElements)

// countElements returns an error if the JSON has too many elements: each but the first of
// a list or an object has a comma before it. Those in strings count too.
func countElements[T string | []byte](text T) error {
	n := 0
	for i := range len(text) {
		if c := text[i]; c == ',' || c == '[' || c == '{' {
			n++
		}
	}
	if n > maxElements {
		return errCrowded
	}
	return nil
}

// parseCNIConfig parses it. It is "null" if the runtime's CNI has not started.
func parseCNIConfig(text []byte) (CNI, []network, error) {
	var c cniConfig
	err := countElements(text)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return CNI{}, nil, fmt.Errorf("read the answer: cniconfig: %w", err)
	}
	var networks []network
	for _, n := range c.Networks {
		if n.IFName != "lo" {
			networks = append(networks, n.Config)
		}
	}
	cni := CNI{PluginDirs: c.PluginDirs, ConfDir: c.PluginConfDir}
	return cni, networks, cni.clean()
}

// parseOwnLoopback reads the one setting needed here from containerd's info["config"],
// its whole configuration.
func parseOwnLoopback(text []byte) (bool, error) {
	var c struct {
		CNI struct {
			UseInternalLoopback bool `json:"useInternalLoopback"`
		} `json:"cni"`
	}
	if len(text) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return false, fmt.Errorf("read the answer: config: %w", err)
	}
	return c.CNI.UseInternalLoopback, nil
}

// clean cleans the directories, which may be missing.
func (c *CNI) clean() error {
	for i, dir := range c.PluginDirs {
		if !path.IsAbs(dir) {
			return fmt.Errorf("the runtime reads plugins from %q, which is not an absolute path", dir)
		}
		c.PluginDirs[i] = path.Clean(dir)
	}
	switch {
	case c.ConfDir == "":
		return nil
	case !path.IsAbs(c.ConfDir):
		return fmt.Errorf("the runtime reads configurations from %q, which is not an absolute path", c.ConfDir)
	}
	c.ConfDir = path.Clean(c.ConfDir)
	return nil
}
