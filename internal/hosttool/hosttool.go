// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package hosttool executes programs of the node, such as its tools, that only root may
// change, in the namespaces of the calling thread. The goroutines for a program's input
// and output end with it.
package hosttool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/printable"
)

// toolDirs are where a node has its tools. A search path from the environment would
// belong to another file system: the caller may be in a container, with its thread in the
// host's mount namespace.
func toolDirs() []string {
	return []string{"/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"}
}

// Tool is a program of the host, with its first arguments.
type Tool []string

// Find finds a trusted tool. If there is none the error matches [fs.ErrNotExist], or
// [ErrUntrusted].
func Find(name string, args ...string) (Tool, error) {
	var untrusted error
	for _, dir := range toolDirs() {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		err := Trust(path)
		if err == nil {
			return append(Tool{path}, args...), nil
		}
		untrusted = errors.Join(untrusted, fmt.Errorf("not executed: %w", err))
	}
	if untrusted != nil {
		return nil, untrusted
	}
	return nil, fmt.Errorf("%s: %w in %s", name, fs.ErrNotExist, strings.Join(toolDirs(), ", "))
}

// Bounds on a tool's time and output.
const (
	toolTime   = time.Minute
	toolOutput = 256 << 20 // bytes, none of which is stored
	toolLine   = 64 << 10
	toolErrors = 4 << 10
)

// Run runs the tool in the thread's namespaces with an environment of its own,
// and calls line, if not nil, with each line of its standard output.
func (t Tool) Run(ctx context.Context, stdin string, line func(string), args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, toolTime, fmt.Errorf("not finished after %s", toolTime))
	defer cancel()
	stdout, stderr := lineWriter{line: line}, headWriter{}
	err := Command{
		Path: t[0], Args: append(t[:len(t):len(t)], args...), Env: []string{"PATH=" + searchPath(), "LC_ALL=C"}, Dir: "/",
		Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
	}.Run(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = failure.Ended(ctx)
	case stdout.err != nil:
		err = stdout.err
	}
	return fmt.Errorf("%s: %w%s", t[0], err, toolSaid(string(stderr)))
}

// searchPath is where a tool finds other programs, such as those in install lines of
// modprobe.d.
func searchPath() string {
	return strings.Join(slices.DeleteFunc(toolDirs(), func(dir string) bool {
		f, err := durable.OpenVetted(nil, dir)
		return err != nil || f.Close() != nil
	}), ":")
}

// lineWriter calls line with each complete line written to it.
type lineWriter struct {
	line  func(string)
	part  []byte // of a line
	total int
	err   error
}

func (w *lineWriter) Write(b []byte) (int, error) {
	for part := range bytes.Lines(b) {
		w.part = append(w.part, part...)
		w.total += len(part)
		if w.total > toolOutput || len(w.part) > toolLine {
			w.err = fmt.Errorf("more output than %d bytes, or %d in a line", toolOutput, toolLine)
			return 0, w.err
		}
		line, whole := bytes.CutSuffix(w.part, []byte("\n"))
		if !whole {
			break
		}
		if w.line != nil {
			w.line(string(line))
		}
		w.part = w.part[:0]
	}
	return len(b), nil
}

// headWriter stores the beginning of the output written to it.
type headWriter []byte

func (w *headWriter) Write(b []byte) (int, error) {
	*w = append(*w, b[:min(len(b), toolErrors-len(*w))]...)
	return len(b), nil
}

// toolSaid returns a tool's own error message, for the end of a line.
func toolSaid(stderr string) string {
	const most = 400
	said := strings.Join(strings.Fields(strings.ToValidUTF8(stderr, "?")), " ")
	if len(said) > most {
		said = strings.ToValidUTF8(said[:most], "") + " ..."
	}
	if said == "" {
		return ""
	}
	return ": " + printable.Line(said)
}
