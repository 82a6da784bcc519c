// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package hosttool runs the node's own tools, within bounds, in the namespaces of the
// calling thread. The goroutines that feed a tool end with it.
package hosttool

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/printable"
)

// toolDirs are where a node has its tools. A search path from the environment
// would be another file system's: the caller may be in a container, with its
// thread in the host's mount namespace.
func toolDirs() []string {
	return []string{"/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"}
}

// Tool is a program of the host, with its first arguments.
type Tool []string

// Find returns nil where there is none.
func Find(name string, args ...string) Tool {
	for _, dir := range toolDirs() {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return append(Tool{path}, args...)
		}
	}
	return nil
}

// Bounds of what a tool may take.
const (
	toolTime   = time.Minute
	toolOutput = 256 << 20 // bytes, none of which is stored
	toolLine   = 64 << 10
	toolErrors = 4 << 10
)

// Run runs the tool in the thread's namespaces with an environment of its own,
// and calls line, if not nil, with each line of its standard output.
func (t Tool) Run(ctx context.Context, stdin string, line func(string), args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, toolTime, fmt.Errorf("not done after %s", toolTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, t[0], append(t[1:len(t):len(t)], args...)...)
	cmd.Env = []string{"PATH=" + strings.Join(toolDirs(), ":"), "LC_ALL=C"}
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(stdin)
	stdout, stderr := lineWriter{line: line}, headWriter{}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case stdout.err != nil:
		err = stdout.err
	}
	return fmt.Errorf("%s: %w%s", t[0], err, toolSaid(string(stderr)))
}

// lineWriter calls line with each whole line that is written.
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

// headWriter stores the beginning of what is written.
type headWriter []byte

func (w *headWriter) Write(b []byte) (int, error) {
	*w = append(*w, b[:min(len(b), toolErrors-len(*w))]...)
	return len(b), nil
}

// toolSaid returns what a tool wrote about its failure, for the end of a line.
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
