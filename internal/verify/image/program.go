// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package image

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// Build compiles a program for Linux: that of the package, such as ./examples/nodeinit, in
// the module that lies in the directory source. It needs Go. The same Go makes the same bytes
// of the same source, wherever that lies.
func Build(ctx context.Context, source, pkg, arch string, flags ...string) ([]byte, error) {
	temp, err := os.MkdirTemp("", "build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	path := filepath.Join(temp, "program")
	args := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", path}, flags...)
	cmd := Go(ctx, source, arch, append(args, pkg)...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("build %s for %s: %w", pkg, arch, err)
	}
	return os.ReadFile(path)
}

// Go is the go command in a directory, for programs as Build makes them.
func Go(ctx context.Context, dir, arch string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0")
	return cmd
}

// OfProgram is an image of one program from scratch, with its licence and those of what it
// links, and the directories that nodeinit's flags and variables name by default in a container.
func OfProgram(arch, name string, program, licence, thirdParty []byte) Image {
	return Image{
		Architecture: arch,
		Files: []File{
			{Path: "/usr/bin/" + name, Mode: 0o755, Content: program},
			{Path: "/usr/share/doc/" + name + "/LICENSE", Mode: 0o644, Content: licence},
			{Path: "/usr/share/doc/" + name + "/THIRD_PARTY_LICENSES", Mode: 0o644, Content: thirdParty},
			{Path: "/hostproc", Mode: fs.ModeDir | 0o555},
			{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		},
		Entrypoint: []string{"/usr/bin/" + name},
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Labels:     map[string]string{"org.opencontainers.image.title": name, "org.opencontainers.image.licenses": "Apache-2.0"},
	}
}
