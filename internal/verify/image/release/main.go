// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command release makes the files that are published of a version: for amd64 and arm64 an
// archive of static programs and an image of nodeinit for docker load, both with the
// licences of the modules that they link, an SBOM, notes with the changelog's section of that
// version, and checksums. It needs Go and git.
//
// It builds a clone of the repository's HEAD, tagged there with the version, so changes
// that are not committed are not in it, and the programs say the version. Two
// releases of one commit by the same Go are equal. It refuses to run if an importer of one
// of the repository's modules would not get the same version of the others.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/verify/image"
	"github.com/slipway-dev/slipway/internal/verify/image/licences"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := release{repository: "../../.."}
	flag.StringVar(&r.version, "version", "", "version, such as v0.1.0: a tag of HEAD, if it exists")
	flag.StringVar(&r.dir, "o", "../../../dist", "directory to make")
	flag.Parse()
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// programs are the packages of the programs, by name: each in a module, whose directory ends
// before "//".
var programs = map[string]string{"nodeinit": ".//examples/nodeinit", "agent": ".//examples/agent", "postrender": "examples/postrender//"}

var architectures = []string{"amd64", "arm64"}

type release struct {
	version, repository, dir string

	clone, commit, time string
	modules             []published
	files               map[string][]byte // of the release, by name
}

// built is a program as it is in an archive.
type built struct {
	name, arch string
	content    []byte
	info       *buildinfo.BuildInfo
	linked     []licences.Module
}

var isVersion = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

func (r *release) run(ctx context.Context) error {
	if !isVersion.MatchString(r.version) {
		return fmt.Errorf("%q is no version such as v0.1.0", r.version)
	}
	temp, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	r.clone, r.files = filepath.Join(temp, "slipway"), map[string][]byte{}
	for _, step := range []func(context.Context) error{r.cloned, r.listed, r.tagged, r.importable, r.made, r.written} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	for _, p := range r.modules {
		fmt.Println("tag", p.tag(r.version))
	}
	return nil
}

// cloned clones HEAD.
func (r *release) cloned(ctx context.Context) (err error) {
	if _, err := git(ctx, r.repository, "clone", "--quiet", "--no-hardlinks", ".", r.clone); err != nil {
		return err
	}
	if r.commit, err = git(ctx, r.clone, "rev-parse", "HEAD"); err != nil {
		return err
	}
	r.time, err = git(ctx, r.clone, "show", "--no-patch", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ")
	return err
}

// tagged tags the clone, for each module.
func (r *release) tagged(ctx context.Context) error {
	if tagged, err := git(ctx, r.clone, "rev-parse", "--verify", "--quiet", r.version+"^{commit}"); err == nil && tagged != r.commit {
		return fmt.Errorf("%s is the version of commit %s, and HEAD is %s", r.version, tagged, r.commit)
	}
	for _, p := range r.modules {
		if _, err := git(ctx, r.clone, "tag", "--force", p.tag(r.version)); err != nil {
			return err
		}
	}
	return nil
}

// made makes the files.
func (r *release) made(ctx context.Context) error {
	changelog, err := os.ReadFile(filepath.Join(r.clone, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	changes, err := changes(string(changelog), r.version)
	if err != nil {
		return err
	}
	licence, err := os.ReadFile(filepath.Join(r.clone, "LICENSE"))
	if err != nil {
		return err
	}
	var all []built
	for _, arch := range architectures {
		some, err := r.built(ctx, arch)
		if err != nil {
			return err
		}
		if err := r.packed(arch, licence, some); err != nil {
			return err
		}
		all = append(all, some...)
	}
	r.files["NOTES.md"] = notes(changes, r.version, r.commit, all[0].info.GoVersion)
	r.files["slipway-"+r.version+".cdx.json"], err = sbom(r.version, r.time, all)
	return err
}

// built builds the programs, and looks whether they say what they are.
func (r *release) built(ctx context.Context, arch string) (all []built, err error) {
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		module, pkg, _ := strings.Cut(programs[name], "//")
		content, err := image.Build(ctx, filepath.Join(r.clone, module), "./"+pkg, arch, "-buildvcs=true")
		if err != nil {
			return nil, err
		}
		info, err := buildinfo.Read(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("%s for %s: %w", name, arch, err)
		}
		if info.Main.Version != r.version {
			return nil, fmt.Errorf("%s says that it is %s, not %s", name, info.Main.Version, r.version)
		}
		linked, err := licences.Of(ctx, filepath.Join(r.clone, module), "./"+pkg, arch, content)
		if err != nil {
			return nil, fmt.Errorf("licences of %s: %w", name, err)
		}
		all = append(all, built{name, arch, content, info, linked})
	}
	return all, nil
}

// packed makes the archive and the image of one architecture.
func (r *release) packed(arch string, licence []byte, all []built) error {
	directory := "slipway-" + r.version + "-linux-" + arch
	files := []image.File{{Path: "/" + directory + "/LICENSE", Mode: 0o644, Content: licence}}
	var linked []licences.Module
	for _, b := range all {
		files = append(files, image.File{Path: "/" + directory + "/" + b.name, Mode: 0o755, Content: b.content})
		linked = append(linked, b.linked...)
		if b.name == "nodeinit" {
			var archive bytes.Buffer
			one := image.OfProgram(arch, b.name, b.content, licence, licences.Text(b.linked))
			one.Labels["org.opencontainers.image.version"], one.Labels["org.opencontainers.image.revision"] = r.version, r.commit
			if err := image.WriteArchive(&archive, "slipway/nodeinit:"+r.version, one); err != nil {
				return err
			}
			r.files["nodeinit-"+r.version+"-linux-"+arch+".image.tar"] = archive.Bytes()
		}
	}
	files = append(files, image.File{Path: "/" + directory + "/THIRD_PARTY_LICENSES", Mode: 0o644, Content: licences.Text(linked)})
	content, err := tarball(files)
	r.files[directory+".tar.gz"] = content
	return err
}

// written writes the files and their checksums into a directory that is new.
func (r *release) written(context.Context) error {
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(r.files[name]), name)
	}
	r.files["SHA256SUMS"] = []byte(sums.String())
	for name, content := range r.files {
		if err := os.WriteFile(filepath.Join(r.dir, name), content, 0o644); err != nil {
			return err
		}
	}
	fmt.Print(sums.String())
	return nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TZ=UTC")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", cmd, err)
	}
	return strings.TrimSpace(string(out)), nil
}
