// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/internal/input/onedoc"
)

// parse returns the values of a file. If there are none, empty says why.
func parse(content []byte) (values map[string]string, empty string, err error) {
	root, err := parseNode(bytes.TrimPrefix(content, []byte("\ufeff")))
	if err != nil {
		return nil, "", err
	}
	top, err := entriesOf(root)
	if err != nil {
		return nil, "", err
	}
	if data, ok, err := manifestData(top); ok || err != nil {
		return data, "it has no data (binaryData and stringData are not read)", err
	}
	values, err = scalars(top)
	return values, "it has no keys", err
}

// parseNode reads JSON by its own rules, since YAML's differ in tabs and escapes, and
// anything else as YAML. It returns nodes, since decoding would turn 0.10 into 0.1.
func parseNode(content []byte) (*yaml.Node, error) {
	if json.Valid(content) {
		d := json.NewDecoder(bytes.NewReader(content))
		d.UseNumber()
		return jsonNode(d)
	}
	root := &yaml.Node{}
	return root, onedoc.Decode(content, root)
}

// jsonNode reads one value of a valid JSON text.
func jsonNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, nested := token.(json.Delim)
	switch {
	case token == nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, nil
	case !nested:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: fmt.Sprint(token)}, nil // a number as it is written
	}
	node := &yaml.Node{Kind: yaml.SequenceNode}
	if delim == '{' {
		node.Kind = yaml.MappingNode
	}
	for d.More() {
		value, err := jsonNode(d)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, value)
	}
	_, err = d.Token() // the end
	return node, err
}

// entry is one entry of a map, in the order of the file.
type entry struct {
	key   string
	value *yaml.Node
	line  int // 0: not known
}

// entriesOf returns the entries of a map, each key once. A missing map has none.
func entriesOf(node *yaml.Node) (all []entry, err error) {
	switch {
	case node == nil || node.Kind == 0 || node.ShortTag() == "!!null":
		return nil, nil
	case node.Kind != yaml.MappingNode:
		return nil, errors.New("it is not a map of keys" + at(node.Line))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		e := entry{value: follow(node.Content[i+1]), line: node.Content[i].Line}
		key := follow(node.Content[i])
		if key.Kind != yaml.ScalarNode {
			return nil, errors.New("a key is a list or map" + at(e.line))
		}
		if e.key = key.Value; seen[e.key] {
			return nil, fmt.Errorf("key %s%s is given twice", quote(e.key), at(e.line))
		}
		seen[e.key] = true
		all = append(all, e)
	}
	return all, nil
}

// manifestData returns the data of a ConfigMap, or false if the entries are not those of
// a manifest.
func manifestData(entries []entry) (map[string]string, bool, error) {
	top := map[string]entry{}
	for _, e := range entries {
		top[e.key] = e
	}
	version, kind, data := top["apiVersion"], top["kind"], top["data"]
	switch {
	case version.value == nil || kind.value == nil:
		return nil, false, nil
	case kind.value.Value != "ConfigMap":
		return nil, true, fmt.Errorf("it holds a manifest of kind %s, not ConfigMap", quote(kind.value.Value))
	}
	if e := data.value; e != nil && e.Kind == yaml.ScalarNode && e.Value == "" {
		return map[string]string{}, true, nil
	}
	fields, err := entriesOf(data.value)
	if err != nil {
		return nil, true, fmt.Errorf("data%s: %w", at(data.line), err)
	}
	values, err := scalars(fields)
	return values, true, err
}

func scalars(entries []entry) (map[string]string, error) {
	values := make(map[string]string, len(entries))
	for _, e := range entries {
		if e.value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("key %s%s has a list or map as its value", quote(e.key), at(e.line))
		}
		switch tag := e.value.ShortTag(); tag {
		case "!!null":
			values[e.key] = ""
		case "!!str", "!!bool", "!!int", "!!float", "!!timestamp":
			values[e.key] = e.value.Value
		default:
			return nil, fmt.Errorf("key %s%s has a value of type %s, which is not text", quote(e.key), at(e.line), quote(tag))
		}
	}
	return values, nil
}

// follow returns what an alias stands for.
func follow(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func at(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(" in line %d", line)
}
