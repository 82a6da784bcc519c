// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"encoding/json"
	"fmt"
	"path"
)

// cniConfig is containerd's info["cniconfig"]: ConfigResult of
// github.com/containerd/go-cni, in one shape from containerd 1.4 to 2.1.
type cniConfig struct {
	PluginDirs       []string
	PluginConfDir    string
	PluginMaxConfNum int
	Networks         []struct {
		IFName string
		Config struct {
			Name, Source string
			Plugins      []struct {
				Network struct {
					Type string `json:"type"`
				}
			}
		}
	}
}

// parseCNIConfig reads it. "null" is that of a runtime whose CNI has not started.
func parseCNIConfig(text string) (CNI, []Network, error) {
	var c cniConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return CNI{}, nil, fmt.Errorf("read the answer: cniconfig: %w", err)
	}
	var networks []Network
	for _, n := range c.Networks {
		if n.IFName == "lo" {
			continue
		}
		network := Network{Name: n.Config.Name, Source: n.Config.Source}
		for _, p := range n.Config.Plugins {
			network.Plugins = append(network.Plugins, p.Network.Type)
		}
		networks = append(networks, network)
	}
	cni := CNI{PluginDirs: c.PluginDirs, ConfDir: c.PluginConfDir, MaxConfNum: c.PluginMaxConfNum}
	return cni, networks, cni.clean()
}

// parseOwnLoopback reads what matters here of containerd's info["config"], its whole
// configuration.
func parseOwnLoopback(text string) (bool, error) {
	var c struct {
		CNI struct {
			UseInternalLoopback bool `json:"useInternalLoopback"`
		} `json:"cni"`
	}
	if text == "" {
		return false, nil
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return false, fmt.Errorf("read the answer: config: %w", err)
	}
	return c.CNI.UseInternalLoopback, nil
}

// clean cleans the directories, which may be missing.
func (c *CNI) clean() error {
	for i, dir := range c.PluginDirs {
		if !path.IsAbs(dir) {
			return fmt.Errorf("the runtime reads plugins from %q, which is no absolute path", dir)
		}
		c.PluginDirs[i] = path.Clean(dir)
	}
	switch {
	case c.ConfDir == "":
		return nil
	case !path.IsAbs(c.ConfDir):
		return fmt.Errorf("the runtime reads configurations from %q, which is no absolute path", c.ConfDir)
	}
	c.ConfDir = path.Clean(c.ConfDir)
	return nil
}
