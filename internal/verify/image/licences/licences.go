// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package licences collects the licences of the modules that a program links, for whoever
// passes the program on: those of Go's standard library too. A module without a licence,
// or with one that is not recognized or not permissive, is an error.
package licences

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"github.com/slipway-dev/slipway/internal/verify/image"
)

// Module is a module that a program links. The standard library's path is std.
type Module struct {
	Path, Version string
	IDs           []string          // of its licences, as SPDX has them, sorted
	Texts         map[string]string // licences and notices, by their path in the module
}

func (m Module) String() string { return m.Path + " " + m.Version }

var (
	isText    = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|unlicense|notice|copyright|patents)([.-].*)?$`)
	isLicence = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|unlicense)([.-].*)?$`)

	permissive = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}
)

// recognized is the least part of a licence's file, in percent, that has to be the words of
// licences known to licensecheck: what pkg.go.dev asks for.
const recognized = 75

// Of returns the modules that the linker has noted in a program, which image.Build has made
// of the same source, package and architecture. It needs Go and the modules' sources.
func Of(ctx context.Context, source, pkg, arch string, program []byte) ([]Module, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, fmt.Errorf("read what the program links: %w", err)
	}
	directories, err := compiled(ctx, source, pkg, arch)
	if err != nil {
		return nil, err
	}
	all := []Module{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		m = cmp.Or(m.Replace, m)
		all = append(all, Module{Path: m.Path, Version: m.Version})
	}
	for i := range all {
		f := directories[all[i].Path]
		err = errors.Join(err, all[i].read(os.DirFS(f.root), slices.Sorted(maps.Keys(f.packages))))
	}
	return all, err
}

// directory is where a module lies, and those of its packages that are compiled, as paths in it.
type directory struct {
	root     string
	packages map[string]bool
}

// compiled returns the directories of the modules whose packages are compiled for a program. Of
// the standard library that is its root: only with cgo is what lies below under another
// licence than Go's (crypto/internal/boring).
func compiled(ctx context.Context, source, pkg, arch string) (map[string]directory, error) {
	std, err := goSays(ctx, source, arch, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	const each = `{{with .Module}}{{with .Replace}}{{.Path}}{{else}}{{.Path}}{{end}}{{"\t"}}{{.Dir}}{{"\t"}}{{$.Dir}}{{end}}`
	packages, err := goSays(ctx, source, arch, "list", "-deps", "-f", each, pkg)
	if err != nil {
		return nil, err
	}
	all := map[string]directory{"std": {std, map[string]bool{".": true}}}
	for line := range strings.SplitSeq(packages, "\n") {
		part := strings.Split(line, "\t")
		inside, err := filepath.Rel(part[1], part[2])
		if err != nil {
			return nil, err
		}
		if all[part[0]].packages == nil {
			all[part[0]] = directory{part[1], map[string]bool{}}
		}
		all[part[0]].packages[filepath.ToSlash(inside)] = true
	}
	return all, nil
}

func goSays(ctx context.Context, source, arch string, args ...string) (string, error) {
	cmd := image.Go(ctx, source, arch, args...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", cmd, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// read reads the texts beside the packages, and in the directories above them up to the
// module's own: what a module has copied from another has its licence with it.
func (m *Module) read(root fs.FS, packages []string) error {
	m.Texts = map[string]string{}
	seen := map[string]bool{}
	for _, dir := range packages {
		for ; !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			entries, err := fs.ReadDir(root, dir)
			if err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
			for _, e := range entries {
				name := path.Join(dir, e.Name())
				if !e.Type().IsRegular() || !isText.MatchString(e.Name()) || path.Ext(name) == ".go" {
					continue
				}
				text, err := fs.ReadFile(root, name)
				if err != nil {
					return fmt.Errorf("%s: %w", m, err)
				}
				m.Texts[name] = string(text)
			}
		}
	}
	return m.identify()
}

// identify sets the IDs.
func (m *Module) identify() error {
	for name, text := range m.Texts {
		if !isLicence.MatchString(path.Base(name)) {
			continue
		}
		found := licensecheck.Scan([]byte(text))
		if found.Percent < recognized {
			return fmt.Errorf("%s: %s is not recognized as a licence", m, name)
		}
		for _, match := range found.Match {
			if !slices.Contains(permissive, match.ID) {
				return fmt.Errorf("%s: the licence %s in %s is none of %s", m, match.ID, name, strings.Join(permissive, ", "))
			}
			m.IDs = append(m.IDs, match.ID)
		}
	}
	if len(m.IDs) == 0 {
		return fmt.Errorf("%s has no licence", m)
	}
	m.IDs = unique(m.IDs)
	return nil
}

func unique(ids []string) []string { return slices.Compact(slices.Sorted(slices.Values(ids))) }

// Merge returns each module once, sorted, with what the programs link of it together.
func Merge(all []Module) []Module {
	once := map[string]Module{}
	for _, m := range all {
		merged := Module{m.Path, m.Version, unique(slices.Concat(once[m.String()].IDs, m.IDs)), map[string]string{}}
		maps.Copy(merged.Texts, once[m.String()].Texts)
		maps.Copy(merged.Texts, m.Texts)
		once[m.String()] = merged
	}
	var sorted []Module
	for _, name := range slices.Sorted(maps.Keys(once)) {
		sorted = append(sorted, once[name])
	}
	return sorted
}

// Text is the file that is passed on with programs that link the modules.
func Text(all []Module) []byte {
	var list, texts strings.Builder
	for _, m := range Merge(all) {
		fmt.Fprintf(&list, "  %s: %s\n", m, strings.Join(m.IDs, ", "))
		for _, name := range slices.Sorted(maps.Keys(m.Texts)) {
			fmt.Fprintf(&texts, "\n==== %s: %s ====\n\n%s\n", m, name, strings.Trim(m.Texts[name], "\r\n"))
		}
	}
	return []byte("These programs link the modules below, under the licences and notices that follow:\n\n" + list.String() + texts.String())
}
