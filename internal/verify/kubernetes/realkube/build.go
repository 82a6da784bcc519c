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

// Binary returns the path of the program that is etcd, each part of Kubernetes
// and kubectl, by the name that it is called by. It builds it where the cache
// does not have it, which takes 8 CPU-minutes from an empty GOCACHE and 5 seconds
// from a warm one. The cache is the directory
// slipway/realkube of os.UserCacheDir, with a name for each state of the
// module; log gets a line when something is built.
func Binary(ctx context.Context, log io.Writer) (string, error) {
	return program{module: "server", name: "server", what: "etcd and Kubernetes (once: 8 CPU-minutes)", flags: kubernetesFlags}.once(ctx, log)
}

// Release is a release of Cilium, by the folder in testdata of the module that requires
// it.
type Release string

// The releases of which programs are built.
const (
	Cilium118 Release = "cilium"
	Cilium120 Release = "cilium-1.20"
)

// Debug returns the path of the release's cilium-dbg, which has the build-config that
// ours is compared with. It is built as the servers are, in 4 CPU-minutes.
func (r Release) Debug(ctx context.Context, log io.Writer) (string, error) {
	return program{module: string(r), name: "cilium-dbg", what: "cilium-dbg (once: 4 CPU-minutes)", flags: ciliumFlags}.once(ctx, log)
}

// Program returns the path of another of the release's programs, by the folder of its
// package, such as tools/mount. The folder daemon is the agent, and operator the one that
// assigns addresses; the two are built in 8 CPU-minutes.
func (r Release) Program(ctx context.Context, log io.Writer, folder string) (string, error) {
	return program{
		module: string(r), pkg: "github.com/cilium/cilium/" + folder, name: filepath.Base(folder), what: "Cilium's " + folder, flags: ciliumFlags,
	}.once(ctx, log)
}

// program is something to build from a module of its own, so that what that requires
// stays there.
type program struct {
	module     string                    // its folder in testdata
	pkg        string                    // empty: the module's own
	name, what string                    // of the file; for who waits
	flags      func(mod string) []string // from the text of go.mod
}

// once builds the program, unless it is there for this state of its module.
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

// stateOf names what is built of a module, and returns its go.mod.
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

// ciliumFlags are those of a release: an agent has to know its version. The operator
// of the image operator-generic is the one with this tag.
func ciliumFlags(mod string) []string {
	version := ciliumVersion.FindStringSubmatch(mod)[1] // the module requires it
	return []string{"-tags=ipam_provider_operator", "-ldflags=-s -w -X github.com/cilium/cilium/pkg/version.ciliumVersion=" + version}
}

var kubernetesVersion = regexp.MustCompile(`k8s\.io/kubernetes v(\d+)\.(\d+)(\.\d+)`)

// kubernetesFlags make the API server say what it is, as a release build does.
func kubernetesFlags(mod string) []string {
	const pkg = "-X k8s.io/component-base/version."
	v := kubernetesVersion.FindStringSubmatch(mod) // the module requires it
	return []string{fmt.Sprintf("-ldflags=-s -w %sgitVersion=v%s.%s%s %sgitMajor=%s %sgitMinor=%s", pkg, v[1], v[2], v[3], pkg, v[1], pkg, v[2])}
}
