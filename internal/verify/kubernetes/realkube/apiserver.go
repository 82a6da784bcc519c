// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// APIServer returns the path of the kube-apiserver of a version of Kubernetes, such as 1.30.14.
// Unless it is in the cache, it is built in 6 CPU-minutes. The module proxy lacks parts of most
// versions; 1.30.14 and 1.33.13 are complete.
func APIServer(ctx context.Context, log io.Writer, version string) (string, error) {
	root, err := programs.Root()
	if err != nil {
		return "", err
	}
	const name = "kube-apiserver"
	dir, err := programs.Kept(ctx, log, "realkube", name+"-"+version, func(dir string) error {
		fmt.Fprintf(log, "building %s %s (once: 6 CPU-minutes)\n", name, version)
		source := filepath.Join(dir, "source")
		mod, err := apiServerModule(ctx, filepath.Join(root, "internal/verify/kubernetes/realkube/testdata/apiserver/main.go"), source, version)
		if err != nil {
			return err
		}
		args := append([]string{"build", "-mod=mod", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, name)}, kubernetesFlags(mod)...)
		return errors.Join(programs.Go(ctx, log, source, nil, append(args, ".")...), os.RemoveAll(source))
	})
	return filepath.Join(dir, name), err
}

var staged = regexp.MustCompile(`(?m)^\t(k8s\.io/\S+) => \./staging/`)

// apiServerModule makes a module that has only the server, and returns its go.mod: the other
// parts of a Kubernetes release are modules of the same version.
func apiServerModule(ctx context.Context, program, dir, version string) (mod string, err error) {
	text, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := programs.Go(ctx, &out, dir, nil, "mod", "download", "-json", "k8s.io/kubernetes@v"+version); err != nil {
		return "", err
	}
	var module struct{ GoMod string }
	if err := json.Unmarshal(out.Bytes(), &module); err != nil {
		return "", fmt.Errorf("%w: %s", err, out.Bytes())
	}
	theirs, err := os.ReadFile(module.GoMod)
	if err != nil {
		return "", err
	}
	mod = "module example.com/apiserver\n\ngo 1.25.0\n\nrequire k8s.io/kubernetes v" + version + "\n"
	for _, m := range staged.FindAllSubmatch(theirs, -1) {
		mod += fmt.Sprintf("replace %s => %[1]s v0.%s\n", m[1], strings.TrimPrefix(version, "1."))
	}
	return mod, errors.Join(
		os.WriteFile(filepath.Join(dir, "main.go"), text, 0o644),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644),
		programs.Go(ctx, &out, dir, nil, "mod", "tidy"))
}
