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
	"path/filepath"
	"regexp"
	"runtime"

	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// Binary returns the path of one program that is etcd, each part of Kubernetes, or kubectl,
// depending on the name it is called by. Unless it is in the cache, it is built, which takes 8
// CPU-minutes with an empty GOCACHE and 5 seconds with a warm one. The cache is the directory
// slipway/realkube of os.UserCacheDir, with a name for each state of the module; a line is
// written to log before a build.
func Binary(ctx context.Context, log io.Writer) (string, error) {
	return program{module: "server", name: "server", what: "etcd and Kubernetes (once: 8 CPU-minutes)", flags: kubernetesFlags}.once(ctx, log)
}

// Release is a release of Cilium, named by the directory in testdata with the module that requires
// it.
type Release string

// The releases whose programs are built.
const (
	Cilium118 Release = "cilium"
	Cilium120 Release = "cilium-1.20"
)

// Debug returns the path of the release's cilium-dbg, which contains the build-config that ours
// is compared with. It is built like the servers, in 4 CPU-minutes.
func (r Release) Debug(ctx context.Context, log io.Writer) (string, error) {
	return program{module: string(r), name: "cilium-dbg", what: "cilium-dbg (once: 4 CPU-minutes)", flags: ciliumFlags}.once(ctx, log)
}

// Program returns the path of another of the release's programs, by its package's directory, such
// as tools/mount. The directory daemon is the agent, and operator the program that assigns
// addresses; building the two takes 8 CPU-minutes.
func (r Release) Program(ctx context.Context, log io.Writer, directory string) (string, error) {
	return program{
		module: string(r), pkg: "github.com/cilium/cilium/" + directory, name: filepath.Base(directory), what: "Cilium's " + directory, flags: ciliumFlags,
	}.once(ctx, log)
}

// program is a program with its own module, so that this module does not get its requirements.
type program struct {
	module     string                    // its directory in testdata
	pkg        string                    // empty means the module's own
	name, what string                    // the file's; for the log
	flags      func(mod string) []string // the flags for go build, from the text of go.mod
}

// once builds the program, unless it exists for this state of its module.
func (p program) once(ctx context.Context, log io.Writer) (string, error) {
	root, err := programs.Root()
	if err != nil {
		return "", err
	}
	source := filepath.Join(root, "internal/verify/kubernetes/realkube/testdata", p.module)
	key, mod, err := stateOf(source)
	if err != nil {
		return "", err
	}
	dir, err := programs.Kept(ctx, log, "realkube", p.name+"-"+key, func(dir string) error {
		fmt.Fprintf(log, "building %s\n", p.what)
		args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, p.name)}, p.flags(mod)...)
		return programs.Go(ctx, log, source, nil, append(args, cmp.Or(p.pkg, "."))...)
	})
	return filepath.Join(dir, p.name), err
}

// stateOf returns a key for the state of a module, and its go.mod.
func stateOf(source string) (key, mod string, err error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		text, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", "", err
		}
		if name == "go.mod" {
			mod = string(text)
		}
		fmt.Fprintln(sum, name, len(text))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], mod, nil
}

var ciliumVersion = regexp.MustCompile(`github\.com/cilium/cilium v(\S+)`)

// ciliumFlags are a release's flags: an agent has to know its version. With this tag, the
// operator is that of the image operator-generic.
func ciliumFlags(mod string) []string {
	version := ciliumVersion.FindStringSubmatch(mod)[1] // go.mod requires it
	return []string{"-tags=ipam_provider_operator", "-ldflags=-s -w -X github.com/cilium/cilium/pkg/version.ciliumVersion=" + version}
}

var kubernetesVersion = regexp.MustCompile(`k8s\.io/kubernetes v(\d+)\.(\d+)(\.\d+)`)

// kubernetesFlags make the API server report its version, like a release build.
func kubernetesFlags(mod string) []string {
	const pkg = "-X k8s.io/component-base/version."
	v := kubernetesVersion.FindStringSubmatch(mod) // go.mod requires it
	return []string{fmt.Sprintf("-ldflags=-s -w %sgitVersion=v%s.%s%s %sgitMajor=%s %sgitMinor=%s", pkg, v[1], v[2], v[3], pkg, v[1], pkg, v[2])}
}
