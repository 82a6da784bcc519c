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
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/libcni"
)

// anyNetwork is the network of a [Chained] that joins the network that a runtime
// would use.
const anyNetwork = "*"

// Chained is another CNI's configuration with the agent's plugin in its chain. It
// is read from the directory each time, so the next Apply picks up the other CNI's
// changes.
//
// A configuration that another agent of the node has rendered from that of a network, as the
// ledger knows, is never chained onto, but shows which network the runtime uses.
type Chained struct {
	// Network is the name of the network to join. If it is empty or "*", it is
	// the network of the first valid configuration in the order of the
	// file names. Our own configuration is skipped, even under an earlier name if
	// the ledger has it, and so is any configuration with no other plugin. If no
	// other fits, configurations that were set aside and have not been written
	// again count, as the ledger has them; for a file that is not recorded, it is the
	// backup with the highest number.
	Network string

	// File is the name of the file that has the configuration, perhaps without its suffix, if
	// that is known. If empty, it may be any.
	File string

	// Agent describes the plugin to insert. If its Mode is empty or "none", it is
	// "generic-veth". The network's name, its version and the other
	// plugins are those of the target: Network and CNIVersion must be zero.
	Agent Agent

	// Plugin, if not nil, is inserted instead of Agent's plugin. It is a JSON
	// object.
	Plugin json.RawMessage

	// InPlace puts the plugin into the very file that it joins, and publishes none: [Install]
	// needs no ConfName then, and is not Exclusive. In a list the plugin is put behind the last
	// one, and all else stays, letter by letter. Whatever the file's owner makes of it, each
	// Apply has the plugin in the file that has the network then, and in no other that runtimes
	// load: pods of another network go without it, and a meta-plugin's file that comes first
	// needs Network to be set. Undoing takes it out of each file of the directory that has it, also
	// of those that were set aside.
	//
	// A plugin of this type is the agent's wherever it is found, such as that of an earlier
	// installer: it is replaced, and does not come back. So it cannot be one of the reference
	// plugins, such as portmap, which others use too: the error matches [ErrInvalid]. The
	// configuration of a single plugin (.conf) has no place for another one, and its owner would
	// write it again under its name, which sorts before that of a list; nor is a symbolic link
	// edited: the error matches [ErrTargetMissing].
	InPlace bool
}

// renderIn returns the configuration as a list (.conflist) with the target's name and
// version. The directory's ConfName and BackupSuffix determine which files are ours.
func (c Chained) renderIn(ctx context.Context, f directory) ([]byte, error) {
	_, raw, err := c.render(ctx, f)
	return raw, err
}

// render also returns the file of the configuration.
func (c Chained) render(ctx context.Context, f directory) (t candidate, raw []byte, err error) {
	plugin, own, err := c.plugin()
	if err != nil {
		return t, nil, fmt.Errorf("render the CNI configuration: %w", err)
	}
	found, err := c.find(ctx, f)
	if err != nil {
		return t, nil, err
	}
	if c.InPlace {
		return found.candidate, listText(found.raw).put(own, plugin), nil
	}
	raw, err = found.chain(plugin)
	return found.candidate, raw, err
}

func (c Chained) joins() string { return cmp.Or(c.Network, anyNetwork) }

// joined says what is joined.
func (c Chained) joined() string {
	if c.joins() == anyNetwork {
		return "the first CNI network"
	}
	return "CNI network " + c.Network
}

// plugin returns the JSON object to insert, without white space, and its type.
func (c Chained) plugin() (raw []byte, own string, err error) {
	entry, err := c.entry()
	var out bytes.Buffer
	if err == nil {
		err = json.Compact(&out, entry)
	}
	if err == nil {
		own, err = pluginType(out.Bytes())
	}
	return out.Bytes(), own, err
}

func (c Chained) entry() ([]byte, error) {
	if c.Plugin != nil {
		return c.Plugin, nil
	}
	a := c.Agent
	if a.Network != "" || a.CNIVersion != "" {
		return nil, errors.New("the network's name and its cniVersion are those of the configuration that it joins")
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
func (c Chained) find(ctx context.Context, f directory) (*target, error) {
	_, own, err := c.plugin()
	if err != nil {
		return nil, err
	}
	theirs, err := f.theirs(ctx)
	if err != nil {
		return nil, err
	}
	theirs = slices.DeleteFunc(theirs, func(t candidate) bool { return c.InPlace && t.file == "" }) // there is no file to put it into
	var all []*target
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
		if err == nil {
			all = append(all, &target{t, n, f.files.isRendered(filepath.Join(f.Dir, t.name))})
			continue
		}
		err = fmt.Errorf("%s is skipped: %w", t.name, err)
		skipped = append(skipped, err)
		if f.passedOver != nil {
			f.passedOver(err.Error())
		}
	}
	found, why := c.choose(all, own), ""
	switch {
	case found == nil:
		why = f.Dir + " has no valid configuration of it (yet), and loopback alone does not count"
	case !c.InPlace:
	case slices.Contains(referencePlugins, own):
		return nil, fmt.Errorf("%w: plugin %s may be the other CNI's own, so it cannot be put in place: give it a configuration of its own", ErrInvalid, own)
	case !found.isList:
		why = filepath.Join(f.Dir, found.candidate.file) + " is that of a single plugin, and no list into which another one could be put"
	case !isRegular(filepath.Join(f.Dir, found.candidate.file)):
		why = filepath.Join(f.Dir, found.candidate.file) + " is a link, and not a file into which a plugin could be put"
	}
	if why == "" {
		return found, nil
	}
	return nil, fmt.Errorf("chain onto %s: %w", c.joined(), errors.Join(append([]error{fmt.Errorf("%w: %s", ErrTargetMissing, why)}, skipped...)...))
}

// target is a configuration to chain onto, as it was read.
type target struct {
	candidate
	*network
	isRendered bool // an agent of the node has made it from another one of its network
}

// choose returns the configuration to chain onto: of the network that runtimes use, the first that
// its owner has written, and that does not have our plugin already; else of another network.
func (c Chained) choose(all []*target, own string) *target {
	fits := func(t *target) bool { return !t.byOthers && c.fits(t, own) }
	first := slices.IndexFunc(all, fits)
	if first < 0 {
		return nil
	}
	all, network := all[first:], all[first].network.name
	follows := func(t *target) bool { return !t.isRendered && t.network.name == network }
	isLoaded := func(t *target) bool { return follows(t) && t.candidate.file == t.candidate.name }
	for _, suits := range []func(*target) bool{
		func(t *target) bool { return isLoaded(t) && (c.InPlace || !slices.Contains(t.types, own)) },
		isLoaded,
		follows,
		func(t *target) bool { return !t.isRendered && fits(t) },
	} {
		if i := slices.IndexFunc(all, suits); i >= 0 {
			return all[i]
		}
	}
	return nil
}

// fits returns false for a configuration with only our plugin, or loopback: no network.
func (c Chained) fits(t *target, own string) bool {
	name := t.candidate.name
	isFile := c.File == "" || c.File == name || c.File == strings.TrimSuffix(name, filepath.Ext(name))
	return isFile && (c.joins() == anyNetwork || c.joins() == t.network.name) &&
		slices.ContainsFunc(t.types, func(typ string) bool { return typ != own && typ != loopback })
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
