// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/input"
)

const headerStart = "# Written by slipway, which puts changes back"

// header is the first line of a drop-in, which says who records it.
func header(agent, dir string) string {
	if dir == "" {
		return headerStart + "."
	}
	return fmt.Sprintf("%s: agent %q, recorded in %q.", headerStart, agent, dir)
}

// readHeader reads the first line of a drop-in; ours is false if this package did
// not write it.
func readHeader(line string) (m ledger.Marked, ours bool) {
	_, _ = fmt.Sscanf(line, headerStart+": agent %q, recorded in %q.", &m.Agent, &m.Dir) // nothing may record it
	return m, line == header(m.Agent, m.Dir)
}

// keepMark returns the wanted content with the file's own first line if nothing
// else differs: who records it does not make the file differ.
func keepMark(ctx context.Context, path string, want []byte) []byte {
	now, err := input.ReadFile(ctx, path, int64(len(want)+longestHeader))
	if err != nil {
		return want // it differs, and the write will report the error
	}
	line, rest, _ := bytes.Cut(now, []byte("\n"))
	_, wanted, _ := bytes.Cut(want, []byte("\n"))
	if _, ours := readHeader(string(line)); ours && bytes.Equal(rest, wanted) {
		return now
	}
	return want
}

// longestHeader exceeds the length of the first line, in bytes.
const longestHeader = 32 << 10

// maxDropIn bounds the files whose first line is read.
const maxDropIn = 1 << 20

// find finds the drop-ins that a [DropIn] of any agent has written to the directory.
func (d DropIn) find(ctx context.Context) (found []ledger.Marked, err error) {
	names, err := input.ReadNames(ctx, d.dir(), func(name string) bool { return filepath.Ext(name) == ".conf" })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, name := range names {
		path := filepath.Join(d.dir(), name)
		content, readErr := input.ReadFile(ctx, path, maxDropIn)
		if ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
		line, _, _ := strings.Cut(string(content), "\n")
		if m, ours := readHeader(line); ours && readErr == nil { // else this package did not write it
			m.Object, m.Remove = path, "rm "+path
			found = append(found, m)
		}
	}
	return found, err
}
