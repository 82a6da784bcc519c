// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package onedoc decodes YAML files that have one document. Templates and editors leave
// empty documents around it, and of two that say something, one would be lost.
package onedoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Decode decodes the one document in content that says something, as a [yaml.Node] or into
// a struct; without one, it changes nothing. A second one is an error, and so is each field
// that the struct does not have. The caller bounds the size of content.
func Decode(content []byte, into any) error {
	found, err := node(content)
	if err != nil || found == nil {
		return err
	}
	if node, ok := into.(*yaml.Node); ok {
		*node = *found
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true)
	for err == nil {
		err = d.Decode(into) // to which empty documents add nothing
	}
	var mistakes *yaml.TypeError
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &mistakes):
		for i, mistake := range mistakes.Errors {
			mistakes.Errors[i], _, _ = strings.Cut(mistake, " in type ") // which is Go's
		}
		return errors.New(strings.Join(mistakes.Errors, "\n"))
	}
	return err
}

func node(content []byte) (found *yaml.Node, err error) {
	d := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		err := d.Decode(&document)
		empty := len(document.Content) == 0 || document.Content[0].ShortTag() == "!!null"
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		case empty:
		case found != nil:
			return nil, fmt.Errorf("line %d starts a second document: only one may say something", document.Content[0].Line)
		default:
			found = document.Content[0]
		}
	}
}
