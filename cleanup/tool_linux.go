// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// toolDirs are where a node has its tools. A search path from the environment
// would be another file system's: the caller may be in a container, with its
// thread in the host's mount namespace.
func toolDirs() []string {
	return []string{"/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"}
}

// tool is a program of the host, with its first arguments.
type tool []string

// findTool returns nil where there is none.
func findTool(name string, args ...string) tool {
	for _, dir := range toolDirs() {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return append(tool{path}, args...)
		}
	}
	return nil
}

// run runs the tool in the thread's namespaces with an environment of its own,
// and returns its standard output.
func (t tool) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, t[0], append(t[1:len(t):len(t)], args...)...)
	cmd.Env = []string{"PATH=" + strings.Join(toolDirs(), ":"), "LC_ALL=C"}
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w%s", t[0], err, toolSaid(stderr.String()))
	}
	return stdout.String(), nil
}

// toolSaid makes what a tool complained about a part of one line.
func toolSaid(stderr string) string {
	const most = 400
	said := strings.Join(strings.Fields(strings.ToValidUTF8(stderr, "?")), " ")
	if len(said) > most {
		said = strings.ToValidUTF8(said[:most], "") + " ..."
	}
	if said == "" {
		return ""
	}
	return ": " + Item{Object: said}.printable().Object
}
