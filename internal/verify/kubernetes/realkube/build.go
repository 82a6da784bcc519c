// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"

	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// moduleDir is the module of the server, from this module's root. It is a
// module of its own, so that what Kubernetes requires stays there.
const moduleDir = "testdata/server"

// Binary returns the path of the program that is etcd, each part of Kubernetes
// and kubectl, by the name that it is called by. It builds it where the cache
// does not have it, which takes 8 CPU-minutes from an empty GOCACHE and 5 seconds
// from a warm one. The cache is the directory
// slipway/realkube of os.UserCacheDir, with a name for each state of the
// module; log gets a line when something is built.
func Binary(ctx context.Context, log io.Writer) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	return buildOnce(ctx, log, program{
		dir: filepath.Join(root, moduleDir), name: "server", what: "etcd and Kubernetes (once: 8 CPU-minutes)",
		flags: func(mod string) []string { return []string{"-ldflags=-s -w " + versionFlags(mod)} },
	})
}

// Cilium returns the path of Cilium's own cilium-dbg, which has the build-config
// that ours is compared with. It is built as the servers are, in 3 CPU-minutes.
func Cilium(ctx context.Context, log io.Writer) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	return buildOnce(ctx, log, program{
		dir: filepath.Join(root, "testdata/cilium"), name: "cilium-dbg", what: "cilium-dbg (once: 3 CPU-minutes)",
		flags: ciliumFlags,
	})
}

// CiliumProgram returns the path of another of Cilium's programs, by the folder of
// its package, such as tools/mount. The folder daemon is the agent, and operator the
// one that assigns addresses; the two are built in 8 CPU-minutes.
func CiliumProgram(ctx context.Context, log io.Writer, folder string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	return buildOnce(ctx, log, program{
		dir: filepath.Join(root, "testdata/cilium"), name: filepath.Base(folder), what: "Cilium's " + folder,
		pkg: "github.com/cilium/cilium/" + folder, flags: ciliumFlags,
	})
}

var ciliumVersion = regexp.MustCompile(`github\.com/cilium/cilium v(\S+)`)

// ciliumFlags are those of a release: an agent has to know its version. The operator
// of the image operator-generic is the one with this tag.
func ciliumFlags(mod string) []string {
	version := ciliumVersion.FindStringSubmatch(mod)[1] // the module requires it
	return []string{"-tags=ipam_provider_operator", "-ldflags=-s -w -X github.com/cilium/cilium/pkg/version.ciliumVersion=" + version}
}

// program is something to build from a module of its own.
type program struct {
	dir, name, what string
	pkg             string                    // empty: the module's own
	flags           func(mod string) []string // from the text of go.mod
}

func buildOnce(ctx context.Context, log io.Writer, p program) (string, error) {
	key, mod, err := stateOf(p)
	if err != nil {
		return "", err
	}
	dir, err := programs.Kept(ctx, log, "realkube", p.name+"-"+key, func(dir string) error {
		fmt.Fprintf(log, "building %s\n", p.what)
		return p.build(ctx, log, filepath.Join(dir, p.name), mod)
	})
	return filepath.Join(dir, p.name), err
}

func (p program) build(ctx context.Context, log io.Writer, path, mod string) error {
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", path}, p.flags(mod)...)
	cmd := exec.CommandContext(ctx, "go", append(args, cmp.Or(p.pkg, "."))...)
	cmd.Dir = p.dir
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w", p.what, err)
	}
	return nil
}

// stateOf names what the binary is made of.
func stateOf(p program) (key, mod string, err error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		text, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil {
			return "", "", fmt.Errorf("read the module of %s: %w", p.what, err)
		}
		if name == "go.mod" {
			mod = string(text)
		}
		fmt.Fprintln(sum, name, len(text))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], mod, nil
}

var kubernetesVersion = regexp.MustCompile(`k8s\.io/kubernetes v(\d+)\.(\d+)(\.\d+)`)

// versionFlags makes the API server say what it is, as a release build does.
func versionFlags(mod string) string {
	v := kubernetesVersion.FindStringSubmatch(mod)
	if v == nil {
		return ""
	}
	const pkg = "-X k8s.io/component-base/version."
	return fmt.Sprintf("%sgitVersion=v%s.%s%s %sgitMajor=%s %sgitMinor=%s", pkg, v[1], v[2], v[3], pkg, v[1], pkg, v[2])
}

// moduleRoot is where the modules of the servers lie.
func moduleRoot() (string, error) {
	root, err := programs.Root()
	return filepath.Join(root, "internal", "verify", "kubernetes", "realkube"), err
}
