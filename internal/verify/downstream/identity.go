// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

const kind = "acme"

// identityFiles undo the record of an identity: one file.
func identityFiles(path string) journal.Files {
	return journal.Files{Kind: kind, May: func(p string) error {
		if p != path {
			return errors.New("it is not the identity")
		}
		return nil
	}}
}

// identity is the agent's own action: a file with the node's identity.
type identity struct {
	path    string
	content []byte
}

func (i identity) file() journal.File { return journal.File{Content: i.content, Mode: 0o644} }

func (i identity) Check(ctx context.Context) ([]string, error) {
	written, err := identityFiles(i.path).Written(ctx, journal.From(ctx), i.path, i.file())
	if written || err != nil {
		return nil, err
	}
	return []string{"write " + i.path}, nil
}

func (i identity) Apply(ctx context.Context) error {
	return identityFiles(i.path).Write(ctx, journal.From(ctx), i.path, i.file())
}

// Kinds and Namespaces declare the action's records, and where it acts.
func (i identity) Kinds() []string      { return identityFiles(i.path).Kinds() }
func (i identity) Namespaces() []string { return identityFiles(i.path).Namespaces() }
