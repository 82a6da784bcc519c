// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/slipway-dev/slipway/internal/verify/image"
)

// published is a module that others can ask for.
type published struct {
	directory string // in the repository; empty: the repository itself
	file      *modfile.File
}

func (p published) path() string              { return p.file.Module.Mod.Path }
func (p published) tag(version string) string { return path.Join(p.directory, version) }

var isOwn = regexp.MustCompile(`(^|/)(internal|testdata)/`)

// listed finds the modules of the clone, except internal ones and those that tests read.
func (r *release) listed(ctx context.Context) error {
	files, err := git(ctx, r.clone, "ls-files", "--", "go.mod", "*/go.mod")
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(files) {
		if isOwn.MatchString(name) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.clone, name))
		if err != nil {
			return err
		}
		file, err := modfile.Parse(name, content, nil)
		if err != nil {
			return err
		}
		r.modules = append(r.modules, published{strings.TrimPrefix(path.Dir("/"+name), "/"), file})
	}
	return nil
}

// importable looks whether a module elsewhere gets this version of each module, and with it
// this version of the others: a go.mod's replace is for this tree alone.
func (r *release) importable(ctx context.Context) error {
	ours := map[string]bool{}
	for _, p := range r.modules {
		ours[p.path()] = true
	}
	var err error
	for _, p := range r.modules {
		for _, m := range p.file.Require {
			if ours[m.Mod.Path] && m.Mod.Version != r.version {
				err = errors.Join(err, fmt.Errorf("an importer of %s would get %s: go mod edit -require=%s@%s %s, and commit it",
					p.path(), m.Mod, m.Mod.Path, r.version, p.file.Syntax.Name))
			}
		}
	}
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "importer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := r.proxy(filepath.Join(temp, "proxy")); err != nil {
		return err
	}
	return r.imported(ctx, temp)
}

// proxy writes the modules as a module proxy has them.
func (r *release) proxy(dir string) error {
	for _, p := range r.modules {
		escaped, err := module.EscapePath(p.path())
		if err != nil {
			return err
		}
		info, err := json.Marshal(map[string]string{"Version": r.version, "Time": r.time})
		if err != nil {
			return err
		}
		var content bytes.Buffer
		if err := zip.CreateFromVCS(&content, module.Version{Path: p.path(), Version: r.version}, r.clone, "HEAD", p.directory); err != nil {
			return err
		}
		base := filepath.Join(dir, escaped, "@v", r.version)
		if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
			return err
		}
		for ending, content := range map[string][]byte{".info": info, ".mod": modfile.Format(p.file.Syntax), ".zip": content.Bytes()} {
			if err := os.WriteFile(base+ending, content, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// imported looks whether a module elsewhere, which has the modules from the proxy in temp,
// finds all that their packages import and embed, and builds those of the nested ones.
func (r *release) imported(ctx context.Context, temp string) error {
	agent := filepath.Join(temp, "agent")
	if err := os.Mkdir(agent, 0o755); err != nil {
		return err
	}
	env, err := importer(ctx, temp)
	if err != nil {
		return err
	}
	get, find, build := []string{"get"}, []string{"list", "-deps"}, []string{"build"}
	versions := []string{"list", "-m", "-f", "{{.Path}}@{{.Version}}"}
	for _, p := range r.modules {
		get, find, versions = append(get, p.path()+"@"+r.version), append(find, p.path()+"/..."), append(versions, p.path())
		if p.directory != "" {
			build = append(build, p.path()+"/...")
		}
	}
	var got string
	for _, args := range [][]string{{"mod", "init", "example.com/agent"}, get, find, build, versions} {
		cmd := image.Go(ctx, agent, architectures[0], args...)
		cmd.Env = append(cmd.Env, env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("an importer's %s: %w\n%s", cmd, err, out)
		}
		got = strings.TrimSpace(string(out))
	}
	if want := strings.Join(get[1:], "\n"); got != want {
		return fmt.Errorf("an importer gets\n%s\ninstead of\n%s", got, want)
	}
	return nil
}

// importer is the environment of a module elsewhere, whose modules come from the proxy in
// temp, the user's cache, or where the user has them from. Its own cache is apart: in the
// user's, what is made here would stand for the version that is published later.
func importer(ctx context.Context, temp string) ([]string, error) {
	users, err := image.Go(ctx, temp, architectures[0], "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	cache, proxy, _ := strings.Cut(strings.TrimSpace(string(users)), "\n")
	return []string{
		"GOPROXY=file://" + filepath.ToSlash(temp) + "/proxy,file://" + filepath.ToSlash(cache) + "/cache/download," + proxy,
		"GOMODCACHE=" + filepath.Join(temp, "cache"), "GOFLAGS=-mod=mod -modcacherw -trimpath",
		"GOWORK=off", "GOSUMDB=off", "GOPRIVATE=", "GONOPROXY=",
	}, nil
}
