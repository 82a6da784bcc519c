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
	"strings"

	"github.com/containernetworking/cni/libcni"
)

// AnyNetwork is the target of a [Chained] that joins whatever network a runtime
// would use.
const AnyNetwork = "*"

// Chained is another CNI's configuration with the agent's plugin in its chain.
// It is read from the folder each time, so what the other CNI changes in it is
// taken over by the next Apply.
type Chained struct {
	// Target is the name of the network to join; zero, AnyNetwork: that of the
	// first valid configuration in the order of the file names. Ours is passed
	// over, also under an earlier name if the journal says so, as is any in which
	// the plugin is the only one. Where no other fits, those count that are set
	// aside and whose place is empty: which they are says the journal; of a file
	// that it does not know, the backup with the highest number.
	Target string

	// Agent is what is put in. Its Mode is ModeGenericVeth if it is zero or
	// ModeNone. The network and its version are the target's, and so are the
	// other plugins: Network, CNIVersion and Base must be zero.
	Agent Agent

	// Plugin is put in instead of Agent's, if it is not nil: a JSON object.
	Plugin json.RawMessage
}

// Render returns the configuration as a list (.conflist) with the target's
// name and version. If no valid configuration in dir fits, the error matches
// [ErrTargetMissing]. Within an [Install] its ConfName and BackupSuffix say what
// is ours, by itself their defaults, and Warn is told of the files that are
// passed over because they are invalid.
func (c Chained) Render(ctx context.Context, dir string) ([]byte, error) {
	return c.renderIn(ctx, folder{dir: dir, own: defaultConfName, suffix: defaultBackupSuffix})
}

func (c Chained) renderIn(ctx context.Context, f folder) ([]byte, error) {
	plugin, err := c.plugin()
	if err != nil {
		return nil, fmt.Errorf("render the CNI configuration: %w", err)
	}
	target, err := c.find(ctx, f, plugin)
	if err != nil {
		return nil, fmt.Errorf("chain onto CNI network %s: %w", c.target(), err)
	}
	return Chain(target, plugin)
}

func (c Chained) target() string { return cmp.Or(c.Target, AnyNetwork) }

// plugin is the JSON object to put in.
func (c Chained) plugin() ([]byte, error) {
	if c.Plugin != nil {
		return c.Plugin, nil
	}
	a := c.Agent
	if a.Network != "" || a.CNIVersion != "" || a.Base != nil {
		return nil, errors.New("the network's name, its cniVersion and its other plugins are those of the target")
	}
	if a.Mode == "" || a.Mode == ModeNone {
		a.Mode = ModeGenericVeth
	}
	if err := a.checkStrings(); err != nil {
		return nil, err
	}
	entry := a.entry()
	entry.Mode = a.Mode // whatever it is
	return encode(entry)
}

// find returns the configuration to chain onto.
func (c Chained) find(ctx context.Context, f folder, plugin []byte) ([]byte, error) {
	own, err := pluginType(plugin)
	if err != nil {
		return nil, err
	}
	theirs, err := f.theirs(ctx)
	if err != nil {
		return nil, err
	}
	var skipped []string
	for _, t := range theirs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := f.parse(ctx, t)
		switch {
		case err != nil:
			skipped = append(skipped, fmt.Sprintf("%s is passed over: %v", t.name, err))
		case c.fits(n, own):
			f.report(skipped)
			return n.raw, nil
		}
	}
	f.report(skipped)
	return nil, errors.Join(fmt.Errorf("%w: %s has no valid configuration of it (yet)", ErrTargetMissing, f.dir), joinTexts(skipped))
}

// fits: a configuration of nothing but our plugin is one of ours.
func (c Chained) fits(n *network, own string) bool {
	return (c.target() == AnyNetwork || c.target() == n.name) &&
		slices.ContainsFunc(n.types, func(t string) bool { return t != own })
}

func (f folder) report(skipped []string) {
	for _, text := range skipped {
		if f.warn != nil {
			f.warn(text)
		}
	}
}

func joinTexts(texts []string) error {
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "\n"))
}

// Chain puts a plugin, a JSON object with a "type", into a configuration: in
// the place of the one of its type (and of any further such), else at the end.
// A configuration of a single plugin (.conf) becomes a list with its name and
// cniVersion. Nothing else changes but white space: keys keep their order,
// numbers their digits. What a runtime would refuse is an [InvalidError].
func Chain(conf, plugin []byte) ([]byte, error) {
	typ, err := pluginType(plugin)
	if err != nil {
		return nil, fmt.Errorf("plugin to chain: %w", err)
	}
	n, err := parse("", conf)
	if err != nil {
		return nil, err
	}
	top := members(conf)
	plugins := []json.RawMessage{conf}
	if n.isList {
		plugins = elements(top.get("plugins"))
	} else {
		top = top.only("cniVersion", "name")
	}
	at := slices.Index(n.types, typ)
	if at < 0 {
		at = len(n.types)
	}
	var chain []json.RawMessage
	for i, p := range append(plugins, plugin) {
		if i == at {
			chain = append(chain, plugin)
		} else if i < len(n.types) && n.types[i] != typ {
			chain = append(chain, p)
		}
	}
	out := top.with("plugins", chain).json()
	_, err = parse("", out)
	return out, err
}

// pluginType is the type that libcni will see in a plugin's configuration.
func pluginType(plugin []byte) (string, error) {
	if _, err := libcni.NetworkPluginConfFromBytes(plugin); err != nil {
		return "", err
	}
	n, err := parse("", object{}.with("name", "a").with("plugins", []json.RawMessage{plugin}).json())
	if err != nil {
		return "", err
	}
	return n.types[0], nil
}

// object is a JSON object with its members in order, each key once.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

// members takes a valid JSON object apart. Of a key's values the last counts,
// as everywhere in encoding/json.
func members(raw []byte) object {
	var o object
	d := json.NewDecoder(bytes.NewReader(raw))
	d.Token() // {
	for d.More() {
		key, _ := d.Token()
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return o
		}
		name, _ := key.(string)
		o = o.with(name, value)
	}
	return o
}

// elements takes a valid JSON array apart.
func elements(raw []byte) []json.RawMessage {
	var all []json.RawMessage
	json.Unmarshal(raw, &all)
	return all
}

func (o object) get(key string) json.RawMessage {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// only keeps the members with these keys.
func (o object) only(keys ...string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return !slices.Contains(keys, m.key) })
}

// with sets a member, which comes last if it is new.
func (o object) with(key string, value any) object {
	raw, _ := encode(value)
	for i := range o {
		if o[i].key == key {
			o[i].value = raw
			return o
		}
	}
	return append(o, member{key, raw})
}

// json is the object as text, one member or element a line.
func (o object) json() []byte {
	var flat, out bytes.Buffer
	for i, m := range o {
		flat.WriteByte("{,"[min(i, 1)])
		key, _ := encode(m.key)
		flat.Write(key)
		flat.WriteByte(':')
		flat.Write(m.value)
	}
	flat.WriteByte('}')
	json.Indent(&out, flat.Bytes(), "", "  ")
	out.WriteByte('\n')
	return out.Bytes()
}
