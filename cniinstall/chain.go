// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/containernetworking/cni/libcni"
)

// anyNetwork is the target of a [Chained] that joins the network that a runtime
// would use.
const anyNetwork = "*"

// Chained is another CNI's configuration with the agent's plugin in its chain. It
// is read from the folder each time, so the next Apply picks up the other CNI's
// changes.
type Chained struct {
	// Target is the name of the network to join. If it is empty or "*", the
	// target is the network of the first valid configuration in the order of the
	// file names. Our own configuration is skipped, even under an earlier name if
	// the ledger has it, and so is any configuration with no other plugin. If no
	// other fits, configurations that were set aside and have not been written
	// again count, as the ledger has them; for a file that is not recorded, it is the
	// backup with the highest number.
	Target string

	// Agent describes the plugin to insert. If its Mode is empty or "none", it is
	// "generic-veth". The network's name, its version and the other
	// plugins are those of the target: Network and CNIVersion must be zero.
	Agent Agent

	// Plugin, if not nil, is inserted instead of Agent's plugin. It is a JSON
	// object.
	Plugin json.RawMessage
}

// renderIn returns the configuration as a list (.conflist) with the target's name and
// version. The folder's ConfName and BackupSuffix determine which files are ours.
func (c Chained) renderIn(ctx context.Context, f folder) ([]byte, error) {
	plugin, err := c.plugin()
	if err != nil {
		return nil, fmt.Errorf("render the CNI configuration: %w", err)
	}
	target, err := c.find(ctx, f, plugin)
	if err != nil {
		return nil, fmt.Errorf("chain onto CNI network %s: %w", c.target(), err)
	}
	return target.chain(plugin)
}

func (c Chained) target() string { return cmp.Or(c.Target, anyNetwork) }

// plugin returns the JSON object to insert.
func (c Chained) plugin() ([]byte, error) {
	if c.Plugin != nil {
		return c.Plugin, nil
	}
	a := c.Agent
	if a.Network != "" || a.CNIVersion != "" {
		return nil, errors.New("the network's name and its cniVersion are those of the target")
	}
	if a.alone() {
		a.Mode = modeGenericVeth
	}
	if err := a.validate(); err != nil {
		return nil, err
	}
	entry := a.entry()
	entry.Mode = a.Mode // whichever it is
	return encode(entry)
}

// find returns the configuration to chain onto.
func (c Chained) find(ctx context.Context, f folder, plugin []byte) (*network, error) {
	own, err := pluginType(plugin)
	if err != nil {
		return nil, err
	}
	theirs, err := f.theirs(ctx)
	if err != nil {
		return nil, err
	}
	var skipped []error
	for _, t := range theirs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		raw, err := t.read(ctx)
		var n *network
		if err == nil {
			n, err = parse(t.name, raw)
		}
		switch {
		case err != nil:
			err = fmt.Errorf("%s is skipped: %w", t.name, err)
			skipped = append(skipped, err)
			if f.passedOver != nil {
				f.passedOver(err.Error())
			}
		case c.fits(n, own):
			return n, nil
		}
	}
	err = fmt.Errorf("%w: %s has no valid configuration of it (yet), and loopback alone does not count", ErrTargetMissing, f.Dir)
	return nil, errors.Join(append([]error{err}, skipped...)...)
}

// fits returns false for a configuration with only our plugin, or loopback: no network.
func (c Chained) fits(n *network, own string) bool {
	return (c.target() == anyNetwork || c.target() == n.name) &&
		slices.ContainsFunc(n.types, func(t string) bool { return t != own && t != loopback })
}

// Chain puts a plugin, a JSON object with a "type", into a configuration. It
// replaces the plugin of the same type, and removes any further ones; if there is
// none, it is added at the end. A configuration of a single plugin (.conf) becomes
// a list with its name and cniVersion. Nothing else changes but white space and
// the order of the list's own keys: a plugin's keep theirs, and numbers their digits. If a runtime would refuse
// the configuration, or it has both "type" and "plugins", of which its file's name
// tells which counts, the error matches [ErrInvalid].
func Chain(conf, plugin []byte) ([]byte, error) {
	n, err := parse("", conf)
	if err != nil {
		return nil, err
	}
	return n.chain(plugin)
}

func (n *network) chain(plugin []byte) ([]byte, error) {
	typ, err := pluginType(plugin)
	if err != nil {
		return nil, fmt.Errorf("plugin to chain: %w", err)
	}
	at := slices.Index(n.types, typ)
	if at < 0 {
		at = len(n.types)
	}
	var chain []json.RawMessage
	for i, p := range append(n.plugins, plugin) {
		if i == at {
			chain = append(chain, plugin)
		} else if i < len(n.types) && n.types[i] != typ {
			chain = append(chain, p)
		}
	}
	top := maps.Clone(n.top)
	if top["plugins"], err = encode(chain); err != nil {
		return nil, err
	}
	out, err := encode(top)
	if err == nil {
		_, err = libcni.NetworkConfFromBytes(out)
	}
	return out, err
}

// pluginType returns the type that libcni will see in a plugin's configuration.
func pluginType(plugin []byte) (string, error) {
	list, err := encode(map[string]any{"name": "a", "plugins": []json.RawMessage{plugin}})
	if err != nil {
		return "", err
	}
	n, err := parse("", list)
	if err != nil {
		return "", err
	}
	return n.types[0], nil
}
