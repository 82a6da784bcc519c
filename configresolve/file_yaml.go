// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/internal/onedoc"
)

// yamlFields reads the one document of content, to the depth that a manifest
// has. It works on nodes, since decoding would turn 0.10 into 0.1.
func yamlFields(content []byte) ([]field, error) {
	var root yaml.Node
	if err := onedoc.Decode(content, &root); err != nil || root.Kind == 0 {
		return nil, err
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: it holds no map of keys", root.Line)
	}
	return yamlMap(&root, true)
}

func yamlMap(node *yaml.Node, nested bool) ([]field, error) {
	var fields []field
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := follow(node.Content[i]), follow(node.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key is a list or map", node.Content[i].Line)
		}
		f, err := yamlField(value, nested)
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", quote(key.Value), err)
		}
		f.key, f.line = key.Value, node.Content[i].Line
		fields = append(fields, f)
	}
	return fields, nil
}

func yamlField(value *yaml.Node, nested bool) (f field, err error) {
	switch value.Kind {
	case yaml.ScalarNode:
		f.scalar = true
		f.value, err = yamlScalar(value)
	case yaml.MappingNode:
		f.isMap = true
		if nested {
			f.fields, err = yamlMap(value, false)
		}
	}
	return f, err
}

func yamlScalar(node *yaml.Node) (string, error) {
	switch node.ShortTag() {
	case "!!null":
		return "", nil
	case "!!str", "!!bool", "!!int", "!!float", "!!timestamp":
		return node.Value, nil
	}
	return "", fmt.Errorf("line %d: a value of type %s is not text", node.Line, quote(node.ShortTag()))
}

// follow returns what an alias stands for.
func follow(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}
