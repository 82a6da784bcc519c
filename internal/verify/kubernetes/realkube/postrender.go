// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// PostRender returns a manifest with a component of examples/deploy over it, as the script
// post-render.sh makes it, whose path is given. The script runs the kubectl of [Binary].
func PostRender(ctx context.Context, log io.Writer, script, component string, manifest []byte) ([]byte, error) {
	binary, err := Binary(ctx, log)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "post-render")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.Symlink(binary, filepath.Join(dir, "kubectl")); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, script, component)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(manifest), log
	return cmd.Output()
}
