// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

const kind = "acme"

// identityFiles undo what an identity has recorded: one file.
func identityFiles(path string) journal.Files {
	return journal.Files{Kind: kind, May: func(p string) error {
		if p != path {
			return errors.New("it is not the identity")
		}
		return nil
	}}
}

// identity is an action of the agent's own: a file says who the node is.
type identity struct {
	path    string
	content []byte
}

func (i identity) Check(ctx context.Context) ([]string, error) {
	now, err := os.ReadFile(i.path)
	switch {
	case err == nil && bytes.Equal(now, i.content):
		return nil, ctx.Err()
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return []string{"write " + i.path}, ctx.Err()
	}
	return nil, fmt.Errorf("identity: %w", err)
}

func (i identity) Apply(ctx context.Context) error {
	changes, err := i.Check(ctx)
	if err != nil || len(changes) == 0 {
		return err
	}
	sum, files := sha256.Sum256(i.content), identityFiles(i.path)
	after := journal.State{Type: "file", Mode: 0o644, Size: int64(len(i.content)), SHA256: hex.EncodeToString(sum[:])}
	if err := files.Begin(ctx, journal.From(ctx), i.path, after); err != nil {
		return err
	}
	if err := i.write(); err != nil {
		return err
	}
	return files.Complete(ctx, journal.From(ctx), i.path)
}

// write puts the content in place at once.
func (i identity) write() error {
	temporary := i.path + ".new"
	if err := os.WriteFile(temporary, i.content, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, i.path)
}

// Kinds and Namespaces say what is recorded, and where it is.
func (i identity) Kinds() []string      { return identityFiles(i.path).Kinds() }
func (i identity) Namespaces() []string { return identityFiles(i.path).Namespaces() }
