// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/verify/image"
)

// notes returns the changelog's section of the version. One before a version, such as
// v0.1.0-rc.1, may be the unreleased one's.
func notes(changelog, version string) (string, error) {
	headings := []string{version}
	if strings.Contains(version, "-") {
		headings = append(headings, "Unreleased")
	}
	for _, heading := range headings {
		for section := range strings.SplitSeq("\n"+changelog, "\n## ") {
			title, text, _ := strings.Cut(section, "\n")
			if word, _, _ := strings.Cut(title, " "); word == heading {
				return "# " + version + "\n" + strings.TrimRight(text, "\n") + "\n", nil
			}
		}
	}
	return "", fmt.Errorf("CHANGELOG.md has no section %s", headings[0])
}

// tarball is a .tar.gz of files, the same bytes each time.
func tarball(files []image.File) ([]byte, error) {
	raw, err := image.Tar(files)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(raw)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// component is a part of a release in CycloneDX 1.6, as far as Go tells of it.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// sbom lists the programs, with what each links: modules and the standard library, as the
// linker has noted it in them.
func sbom(version, time string, all []built) ([]byte, error) {
	libraries := map[string]component{}
	top := component{Type: "application", Ref: "slipway", Name: "slipway", Version: version}
	programs, links := []component{}, []dependency{{Ref: top.Ref}}
	for _, b := range all {
		ref := b.name + "-linux-" + b.arch
		programs = append(programs, component{
			Type: "application", Ref: ref, Name: b.name, Version: version, PURL: purl(b.info.Main.Path, version) + "?goarch=" + b.arch + "&goos=linux",
			Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(b.content))}},
		})
		linked := map[string]component{}
		for _, m := range modules(b.info) {
			c := component{Type: "library", Ref: purl(m.Path, m.Version), Name: m.Path, Version: m.Version, PURL: purl(m.Path, m.Version)}
			linked[c.Ref] = c
		}
		maps.Copy(libraries, linked)
		links[0].DependsOn = append(links[0].DependsOn, ref)
		links = append(links, dependency{ref, slices.Sorted(maps.Keys(linked))})
	}
	for _, ref := range slices.Sorted(maps.Keys(libraries)) {
		programs = append(programs, libraries[ref])
	}
	out, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":   map[string]any{"timestamp": time, "component": top},
		"components": programs, "dependencies": links,
	}, "", "  ")
	return append(out, '\n'), err
}

// modules are the modules that a program links, with what replaces one in its place, and
// the standard library.
func modules(info *debug.BuildInfo) []*debug.Module {
	all := []*debug.Module{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, m)
	}
	return all
}

// purl names a module as package-url has it.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}
