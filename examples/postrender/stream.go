// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

var (
	lines   = regexp.MustCompile(`[^\r\n]*(?:\r\n|\r|\n|$)`)
	marker  = regexp.MustCompile(`^(\x{feff}?(?:---|\.\.\.))(?:[ \t\r\n]|$)`) // in no text of a document
	comment = regexp.MustCompile(`^\x{feff}?[ \t]*(?:[#\r\n]|$)`)
)

// split returns in turn what is between documents, such as comments, and a document.
func split(stream []byte) [][]byte {
	parts := [][]byte{nil}
	inside := false
	for _, line := range lines.FindAll(stream, -1) {
		if mark := marker.FindSubmatch(line); mark != nil {
			if inside {
				parts, inside = append(parts, nil), false
			}
			parts[len(parts)-1] = append(parts[len(parts)-1], mark[1]...)
			line = line[len(mark[1]):]
		}
		if !inside && !comment.Match(line) {
			parts, inside = append(parts, nil), true
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], line...)
	}
	return parts
}

// object parses a document if it can be of that kind and name; others are nobody's to judge.
func object(document []byte, kind, name string) (*yaml.RNode, error) {
	if !bytes.Contains(document, []byte(kind)) || !bytes.Contains(document, []byte(name)) {
		return nil, nil
	}
	var node yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(document))
	if err := decoder.Decode(&node); err != nil {
		return nil, fmt.Errorf("read the chart: %w", err)
	}
	if err := decoder.Decode(&yaml.Node{}); err != io.EOF { // the parser has more ends of a line than we
		return nil, errors.New("read the chart: a document does not end where the next begins")
	}
	found := yaml.NewRNode(&node)
	if found.GetKind() != kind {
		return nil, nil
	}
	return found, nil
}
