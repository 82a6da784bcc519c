// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package licences

import (
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/image"
)

// text is a file with the text of a licence, as it is in modules: Apache-2.0 is this
// repository's, BSD-3-Clause Go's.
func text(t *testing.T, path string) *fstest.MapFile {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return &fstest.MapFile{Data: content}
}

func TestTextsOfWhatIsCompiledAreFound(t *testing.T) {
	apache, bsd, other := text(t, "../../../../LICENSE"), text(t, filepath.Join(build.Default.GOROOT, "LICENSE")), &fstest.MapFile{Data: []byte("x")}
	root := fstest.MapFS{
		"LICENSE.md": apache, "NOTICE": other, "license.go": other, "license_test.go": other, "go.mod": other,
		"forked/LICENCE": bsd, "forked/PATENTS": other, "forked/json/json.go": other,
		"testdata/LICENSE": other, "unused/LICENSE": other, "licenses/x": other,
	}
	m := Module{Path: "example.com/a", Version: "v1.0.0"}
	require.NoError(t, m.read(root, []string{"forked/json"}))
	require.Equal(t, []string{"Apache-2.0", "BSD-3-Clause"}, m.IDs)
	require.Equal(t, map[string]string{
		"LICENSE.md": string(apache.Data), "NOTICE": "x", "forked/LICENCE": string(bsd.Data), "forked/PATENTS": "x",
	}, m.Texts)
}

func TestAModuleThatMayNotBePassedOnIsRefused(t *testing.T) {
	const gpl = "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version."
	for name, c := range map[string]struct {
		root fstest.MapFS
		want string
	}{
		"none":           {fstest.MapFS{"a.go": {}, "NOTICE": {Data: []byte("x")}}, "example.com/a v1.0.0 has no licence"},
		"only elsewhere": {fstest.MapFS{"a.go": {}, "b/LICENSE": text(t, "../../../../LICENSE")}, "example.com/a v1.0.0 has no licence"},
		"unknown":        {fstest.MapFS{"COPYING": {Data: []byte("Ask me.")}}, "example.com/a v1.0.0: COPYING is not recognized as a licence"},
		"not permissive": {fstest.MapFS{"LICENSE": {Data: []byte(gpl)}}, "example.com/a v1.0.0: the licence GPL-3.0-or-later in LICENSE is none of Apache-2.0, "},
	} {
		m := Module{Path: "example.com/a", Version: "v1.0.0"}
		require.ErrorContains(t, m.read(c.root, []string{"."}), c.want, name)
	}
	m := Module{Path: "example.com/gone", Version: "v1.0.0"}
	require.ErrorContains(t, m.read(os.DirFS(t.TempDir()), []string{"b"}), "example.com/gone v1.0.0: ", "no such directory")
}

// Every module that go version reports of a program is collected, with a licence.
func TestAProgramsModulesAreThoseThatGoTellsOf(t *testing.T) {
	const source, pkg, arch = "../../../..", "./examples/nodeinit", "arm64"
	program, err := image.Build(t.Context(), source, pkg, arch)
	require.NoError(t, err)
	all, err := Of(t.Context(), source, pkg, arch, program)
	require.NoError(t, err)

	path := filepath.Join(t.TempDir(), "nodeinit")
	require.NoError(t, os.WriteFile(path, program, 0o755))
	out, err := exec.Command("go", "version", "-m", path).Output()
	require.NoError(t, err)
	var reported []string
	for line := range strings.Lines(string(out)) {
		if dep, is := strings.CutPrefix(line, "\tdep\t"); is {
			reported = append(reported, strings.Join(strings.Fields(dep)[:2], " "))
		}
	}
	require.Contains(t, strings.Join(reported, "\n"), "k8s.io/client-go v")
	require.Equal(t, "std", all[0].Path)
	require.Equal(t, []string{"BSD-3-Clause"}, all[0].IDs)
	require.Contains(t, string(out), ": go"+all[0].Version+"\n")
	var collected []string
	for _, m := range all[1:] {
		collected = append(collected, m.String())
		require.NotEmpty(t, m.IDs, m)
	}
	require.Equal(t, reported, collected)

	file := string(Text(all))
	for _, m := range all {
		require.Contains(t, file, "\n  "+m.String()+": "+m.IDs[0])
		for name, text := range m.Texts {
			require.Contains(t, file, "==== "+m.String()+": "+name+" ====\n\n"+strings.Trim(text, "\r\n"))
		}
	}
	require.Equal(t, file, string(Text(append(all, all...))), "each once")
}
