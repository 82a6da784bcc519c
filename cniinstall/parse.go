// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/utils"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/slipway-dev/slipway/internal/cniconf"
	"github.com/slipway-dev/slipway/internal/cniresult"
)

// network is a configuration that libcni accepts.
type network struct {
	file    string
	raw     []byte
	list    []byte                     // raw, or as runtimes wrap a single plugin's configuration
	top     map[string]json.RawMessage // the members of list
	name    string
	isList  bool
	version string            // the version requested from the plugins; never empty
	types   []string          // of the plugins, in their order
	plugins []json.RawMessage // those in list
}

// part is a plugin in the directory of a list's network.
type part struct {
	path, plugin string
	err          error // not nil if it is not a plugin
}

// needs reports whether a pod with the network would fail without the plugin.
func (n *network) needs(plugin string) bool {
	return plugin == loopback || slices.Contains(n.types, plugin) || cniresult.Names(n.raw, plugin)
}

// parse reads a configuration like a runtime that finds it under the name file, and
// parts in the directory of its network. Without a name, the content must tell whether
// it is a list.
func parse(file string, raw []byte, parts ...part) (*network, error) {
	n := &network{file: file, raw: raw, list: raw}
	if err := json.Unmarshal(raw, &n.top); err != nil {
		return nil, n.syntax(err)
	}
	if n.top == nil {
		return nil, n.invalid(-1, errors.New("it is null, not an object"))
	}
	var single struct{ CNIVersion, Name, Type json.RawMessage } // in any case, as libcni reads a single plugin's
	_ = json.Unmarshal(raw, &single)                            // it is an object
	hasPlugins, hasType := n.top["plugins"] != nil, single.Type != nil
	n.isList = cniconf.IsList(file) || file == "" && !hasType
	if err := n.kindFits(hasPlugins || len(parts) > 0, hasType); err != nil {
		return nil, n.invalid(-1, err)
	}
	if !n.isList {
		n.wrap(single.CNIVersion, single.Name)
	}
	if err := n.checkPlugins(); err != nil {
		return nil, err
	}
	list, err := libcni.NetworkConfFromBytes(n.list)
	if err != nil {
		return nil, n.invalid(-1, err)
	}
	if list.LoadOnlyInlinedPlugins {
		parts = nil
	}
	return n, n.adopt(list, parts)
}

// wrap makes the list of a single plugin's configuration.
func (n *network) wrap(version, name json.RawMessage) {
	n.top = map[string]json.RawMessage{"cniVersion": version, "name": name}
	maps.DeleteFunc(n.top, func(_ string, value json.RawMessage) bool { return value == nil })
	n.top["plugins"], _ = encode([]json.RawMessage{n.raw}) // it has been parsed
	n.list, _ = encode(n.top)
}

// kindFits checks that the content is of the kind that a runtime takes it for.
func (n *network) kindFits(hasPlugins, hasType bool) error {
	switch {
	case n.file == "" && hasPlugins && hasType:
		return errors.New(`it has "type" and "plugins": only its file's name tells which counts`)
	case n.isList && !hasPlugins:
		return errors.New(`it has no "plugins" (the configuration of a single plugin belongs in a .conf file)`)
	case !n.isList && !hasType:
		return errors.New(`it has no "type" (a list of plugins belongs in a .conflist file)`)
	}
	return nil
}

// checkPlugins lets libcni read each plugin by itself, for its index.
func (n *network) checkPlugins() error {
	raw := n.top["plugins"]
	switch {
	case raw == nil: // they are in the directory of the network
	case json.Unmarshal(raw, &n.plugins) != nil:
		return n.invalid(-1, errors.New(`"plugins" is not an array`))
	case len(n.plugins) == 0:
		return n.invalid(-1, errors.New(`"plugins" is empty`))
	}
	for i, raw := range n.plugins {
		if _, err := pluginName(raw); err != nil {
			return n.invalid(i, err)
		}
	}
	return nil
}

// pluginName is the type of a plugin's configuration.
func pluginName(raw []byte) (string, error) {
	conf, err := libcni.NetworkPluginConfFromBytes(raw)
	if err != nil {
		return "", err
	}
	if t := conf.Network.Type; t == "." || t == ".." || strings.ContainsAny(t, string(filepath.Separator)+"/\x00") {
		return "", fmt.Errorf("type %q is not a file name", t)
	}
	return conf.Network.Type, nil
}

// adopt takes over libcni's result, after the checks that libcni makes only when a
// pod starts.
func (n *network) adopt(list *libcni.NetworkConfigList, parts []part) error {
	if err := utils.ValidateNetworkName(list.Name); err != nil {
		return n.invalid(-1, fmt.Errorf("name %q: %s", list.Name, err.Msg))
	}
	if _, _, _, err := version.ParseVersion(list.CNIVersion); err != nil {
		return n.invalid(-1, fmt.Errorf("cniVersion %q: %w", list.CNIVersion, err))
	}
	n.name = list.Name
	if n.version = list.CNIVersion; n.version == "" {
		n.version = "0.1.0" // the specification's default
	}
	for _, p := range list.Plugins {
		n.types = append(n.types, p.Network.Type)
	}
	for _, p := range parts {
		if p.err != nil {
			return n.invalid(-1, fmt.Errorf("%s: %w", p.path, p.err))
		}
		n.types = append(n.types, p.plugin)
	}
	return nil
}

// invalid returns an error about the plugin at index in a list or, for -1, the whole.
func (n *network) invalid(index int, err error) error {
	if index >= 0 && n.isList {
		return n.invalidAt(fmt.Sprintf(", plugins[%d]", index), err)
	}
	return n.invalidAt("", err)
}

func (n *network) invalidAt(place string, err error) error {
	if n.file != "" {
		place = " " + n.file + place
	}
	return fmt.Errorf("%w%s: %w", ErrInvalid, place, err)
}

// syntax returns an error of encoding/json with its line and column, which is in bytes.
func (n *network) syntax(err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		before := n.raw[:max(syntax.Offset-1, 0)] // it counts the byte it stumbled over
		line, column := bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')
		return n.invalidAt(fmt.Sprintf(", line %d column %d", line, column), err)
	case errors.As(err, &typ):
		err = fmt.Errorf("it is a JSON %s, not an object", typ.Value)
	}
	return n.invalidAt("", err)
}
