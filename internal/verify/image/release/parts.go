// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/slipway-dev/slipway/internal/verify/image"
	"github.com/slipway-dev/slipway/internal/verify/image/licences"
)

//go:embed notes.md
var form string

var inRepository = regexp.MustCompile(`\]\(([^:)]+)\)`)

// notes says what is published of the version, and what has changed, for a page outside the
// repository.
func notes(changes, version, commit, compiler string) []byte {
	text := strings.NewReplacer("{version}", version, "{commit}", commit, "{go}", compiler, "{changes}", changes).Replace(form)
	return []byte(inRepository.ReplaceAllString(text, "](https://github.com/slipway-dev/slipway/blob/"+version+"/$1)"))
}

// changes returns the changelog's section of the version. That of one before a version, such
// as v0.1.0-rc.1, may be the unreleased one.
func changes(changelog, version string) (string, error) {
	headings := []string{version}
	if strings.Contains(version, "-") {
		headings = append(headings, "Unreleased")
	}
	for _, heading := range headings {
		for section := range strings.SplitSeq("\n"+changelog, "\n## ") {
			title, text, _ := strings.Cut(section, "\n")
			if word, _, _ := strings.Cut(title, " "); word == heading {
				return strings.TrimSpace(text), nil
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

// sbom lists, as CycloneDX, the programs and what each links: modules and the standard
// library, with their licences.
func sbom(version, time string, all []built) ([]byte, error) {
	top := cyclonedx.Component{Type: cyclonedx.ComponentTypeApplication, BOMRef: "slipway", Name: "slipway", Version: version}
	parts, links := []cyclonedx.Component{}, []cyclonedx.Dependency{{Ref: top.BOMRef, Dependencies: &[]string{}}}
	var linked []licences.Module
	for _, b := range all {
		ref := b.name + "-linux-" + b.arch
		parts = append(parts, cyclonedx.Component{
			Type: cyclonedx.ComponentTypeApplication, BOMRef: ref, Name: b.name, Version: version,
			PackageURL: purl(b.info.Main.Path, version) + "?goarch=" + b.arch + "&goos=linux",
			Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(b.content))}},
			Licenses:   licensed("Apache-2.0"),
		})
		refs := []string{}
		for _, m := range licences.Merge(b.linked) {
			refs = append(refs, purl(m.Path, m.Version))
		}
		linked = append(linked, b.linked...)
		*links[0].Dependencies = append(*links[0].Dependencies, ref)
		links = append(links, cyclonedx.Dependency{Ref: ref, Dependencies: &refs})
	}
	for _, m := range licences.Merge(linked) {
		parts = append(parts, cyclonedx.Component{
			Type: cyclonedx.ComponentTypeLibrary, BOMRef: purl(m.Path, m.Version), Name: m.Path, Version: m.Version,
			PackageURL: purl(m.Path, m.Version), Licenses: licensed(m.IDs...),
		})
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: time, Component: &top}
	bom.Components, bom.Dependencies = &parts, &links
	var out bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}

func licensed(ids ...string) *cyclonedx.Licenses {
	all := cyclonedx.Licenses{}
	for _, id := range ids {
		all = append(all, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
	}
	return &all
}

// purl names a module as package-url has it.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}
