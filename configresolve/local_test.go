// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/internal/code"
)

func read(t *testing.T, s configresolve.Source) values {
	t.Helper()
	layers, err := s.Read(t.Context())
	require.NoError(t, err)
	require.Len(t, layers, 1)
	require.Equal(t, s.Ref, layers[0].Ref)
	return layers[0].Values
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// mounted lays out a ConfigMap as the kubelet does.
func mounted(t *testing.T, version string, v values) string {
	t.Helper()
	dir := t.TempDir()
	for key, value := range v {
		write(t, filepath.Join(dir, version, key), value)
		require.NoError(t, os.Symlink(filepath.Join("..data", key), filepath.Join(dir, key)))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, version), 0o755))
	require.NoError(t, os.Symlink(version, filepath.Join(dir, "..data")))
	return dir
}

func TestDirReadsAMountedConfigMap(t *testing.T) {
	want := values{"a": "1", "empty": "", "text": "kept \n\n", ".hidden": "x"}
	dir := mounted(t, "..2026_01_02_03_04_05.123", want)
	write(t, filepath.Join(dir, "..other"), "not a key")
	write(t, filepath.Join(dir, "sub", "file"), "not a key")
	require.Equal(t, want, read(t, configresolve.Dir(dir)))
}

func TestDirErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := configresolve.Dir(filepath.Join(dir, "no")).Read(t.Context())
	require.ErrorIs(t, err, configresolve.ErrMissing)
	require.Equal(t, "config.source-missing", code.Of(err))

	for i := range 20 {
		require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, fmt.Sprintf("dangling-%02d", i))))
	}
	_, err = configresolve.Dir(dir).Read(t.Context())
	require.ErrorContains(t, err, "dangling-00", "always the same one")
	require.NotErrorIs(t, err, configresolve.ErrMissing, "a broken directory is not a missing one")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = configresolve.Dir(mounted(t, "..v", values{"a": ""})).Read(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// A writer keeps switching versions; a reader never sees a mix of two.
func TestDirReadsOneVersion(t *testing.T) {
	dir := t.TempDir()
	version := func(i int) *configresolve.Config {
		v := values{}
		for k := range 20 {
			v[fmt.Sprintf("key-%d", k)] = fmt.Sprint(i)
		}
		return resolve(t, configresolve.Resolver{Sources: []configresolve.Source{static("s", v)}})
	}
	configs := []*configresolve.Config{version(0), version(1)}
	_, err := configdir.Write(t.Context(), dir, configs[0])
	require.NoError(t, err)
	written := make(chan error, 1)
	go func() {
		for i := range 50 {
			if _, err := configdir.Write(context.Background(), dir, configs[i%2]); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	good := 0
	for len(written) == 0 {
		layers, err := configresolve.Dir(dir).Read(t.Context())
		if err != nil {
			require.ErrorContains(t, err, "changes faster than it can be read")
			continue
		}
		good++
		seen := map[string]bool{}
		for key, value := range layers[0].Values {
			if strings.HasPrefix(key, "key-") {
				seen[value] = true
			}
		}
		require.Len(t, seen, 1)
	}
	require.NoError(t, <-written)
	require.NotZero(t, good)
}

func TestFile(t *testing.T) {
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: y}\nbinaryData: {blob: AAAA}\n"
	for name, test := range map[string]struct {
		content string
		want    values
	}{
		"yaml":                 {"a: one\nb: \"two\"\n", values{"a": "one", "b": "two"}},
		"scalars as written":   {"a: 0.0250\nb: true\nc: 1e3\nd: 010\ne: 2001-01-02\nf: ~\ng:\nh: 0x1F\n", values{"a": "0.0250", "b": "true", "c": "1e3", "d": "010", "e": "2001-01-02", "f": "", "g": "", "h": "0x1F"}},
		"texts":                {"a: |\n  one\n  two\nb: \" kept \\n\"\nc: ''\n", values{"a": "one\ntwo\n", "b": " kept \n", "c": ""}},
		"aliases":              {"a: &x one\nb: *x\n", values{"a": "one", "b": "one"}},
		"json":                 {"\t{\"a\": \"t\\u0061b\\ud83d\\ude00\\/\",\n\t\"n\": 1.50, \"t\": true, \"z\": null}", values{"a": "tab😀/", "n": "1.50", "t": "true", "z": ""}},
		"flow yaml":            {"{a: one, b: 2}", values{"a": "one", "b": "2"}},
		"manifest":             {manifest + "data:\n  a: \"1\"\n  kind: x\n", values{"a": "1", "kind": "x"}},
		"manifest, no data":    {manifest, values{}},
		"manifest, null":       {manifest + "data:\n", values{}},
		"manifest in json":     {`{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"1"},"binaryData":{"b":"AA=="}}`, values{"a": "1"}},
		"kind alone is a key":  {"kind: something\n", values{"kind": "something"}},
		"byte order mark":      {"\ufeff{\"a\": \"1\"}", values{"a": "1"}},
		"empty":                {"", values{}},
		"comment":              {"# nothing\n", values{}},
		"null":                 {"null", values{}},
		"explicit document":    {"---\na: 1\n...\n", values{"a": "1"}},
		"manifest and nothing": {manifest + "data: {a: b}\n---\n", values{"a": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "f"), test.content)
			require.Equal(t, test.want, read(t, configresolve.File(path)))
		})
	}
}

func TestCFG4_ASourceThatExistsAndGivesNoKeysIsReported(t *testing.T) {
	const manifest, noData = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "it has no data (binaryData and stringData are not read)"
	for content, why := range map[string]string{
		manifest: noData, manifest + "data:\n": noData, manifest + "data: {}\n": noData,
		manifest + "binaryData: {a: AAAA}\n":          noData,
		manifest + "stringData: {a: b}\n":             noData,
		"# nothing\n":                                 "it has no keys",
		manifest + "data: {a: b}\nstringData: {c: d}": "",
		"kind: ConfigMap\n":                           "",
	} {
		f := configresolve.File(write(t, filepath.Join(t.TempDir(), "f"), content))
		config, err := configresolve.Resolve(t.Context(), f)
		require.NoError(t, err)
		if why == "" {
			require.Empty(t, config.Explain().Findings, content)
			continue
		}
		require.Equal(t, []configresolve.Finding{{Problem: "empty", Source: f.Ref, Reason: why}}, config.Explain().Findings, content)
		require.Contains(t, config.Explain().String(), "! empty file:"+f.Ref.Name+": "+why)
	}
	config, err := configresolve.Resolve(t.Context(), configresolve.Dir(t.TempDir()), configresolve.Env("NONE_", nil))
	require.NoError(t, err)
	require.Len(t, config.Explain().Findings, 1)
	require.Equal(t, "it has no files", config.Explain().Findings[0].Reason)
}

func TestFileErrors(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"bad yaml":         {"a: [", "line 1"},
		"tab":              {"a:\n\tb: 1\n", "line 2"},
		"a list":           {"- a\n", "not a map of keys"},
		"a scalar":         {"hello\n", "not a map of keys"},
		"json list":        {"[1]", "not a map of keys"},
		"nested":           {"a:\n  b: 1\n", `key "a" in line 1 has a list or map`},
		"list value":       {`{"a": [1]}`, `key "a" has a list or map`},
		"doubled":          {"a: 1\nb: 2\na: 3\n", `key "a" in line 3 is given twice`},
		"doubled in json":  {`{"a": "1", "a": "2"}`, `key "a" is given twice`},
		"two documents":    {"a: 1\n---\nb: 2\n", "second document"},
		"other kind":       {"apiVersion: v1\nkind: Secret\ndata: {a: Yg==}\n", `kind "Secret"`},
		"data is a list":   {"apiVersion: v1\nkind: ConfigMap\ndata: [a]\n", "data"},
		"data is a string": {"apiVersion: v1\nkind: ConfigMap\ndata: text\n", "data in line 3: it is not a map"},
		"binary":           {"a: !!binary AAAA\n", `type "!!binary"`},
		"custom tag":       {"a: !vault x\n", `type "!vault"`},
		"merge":            {"x: &x {a: 1}\n<<: *x\n", "list or map"},
		"complex key":      {"? [a, b]\n: c\n", "a key is a list or map"},
		"doubled data":     {"apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\ndata: {c: d}\n", `"data" in line 4 is given twice`},
		"too large":        {strings.Repeat("#", 8<<20+1), "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "f"), test.content)
			_, err := configresolve.File(path).Read(t.Context())
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, path)
		})
	}
	_, err := configresolve.File(filepath.Join(t.TempDir(), "no")).Read(t.Context())
	require.ErrorIs(t, err, configresolve.ErrMissing)
	f := configresolve.File(write(t, filepath.Join(t.TempDir(), "f"), "a: b\n---\nc: d\n"))
	require.ErrorContains(t, configresolve.DecodeFile(t.Context(), f.Ref.Name, new(struct{ A string })), "parse "+f.Ref.Name+": line 3 starts a second document")
	_, err = configresolve.File(t.TempDir()).Read(t.Context())
	require.Error(t, err)
	require.NotErrorIs(t, err, configresolve.ErrMissing)
}

func TestEnv(t *testing.T) {
	e := configresolve.Env("CILIUM_", []string{
		"CILIUM_ENABLE_IPV4=true", "CILIUM_EMPTY=", "CILIUM_TEXT=a=b\n", "CILIUMX=no", "OTHER_CILIUM_X=no", "cilium_x=no", "CILIUM_bpf-root=/x"})
	require.Equal(t, values{"enable-ipv4": "true", "empty": "", "text": "a=b\n", "bpf-root": "/x"}, read(t, e))

	_, err := configresolve.Env("", []string{"A=1"}).Read(t.Context())
	require.ErrorContains(t, err, "empty prefix")
	_, err = configresolve.Env("A_", []string{"A_B_C=1", "A_b-c=2"}).Read(t.Context())
	require.ErrorContains(t, err, `"A_B_C" and "A_b-c" both give the key "b-c"`)

	c, err := configresolve.Resolve(t.Context(), configresolve.Env("A_", []string{"A_=x", "A_OK=1"}))
	require.NoError(t, err)
	require.Equal(t, values{"ok": "1"}, all(c))
	require.Equal(t, "invalid", c.Explain().Findings[0].Problem)
}

func TestStaticIsNotShared(t *testing.T) {
	given := values{"a": "1"}
	got := read(t, configresolve.Static("s", given))
	got["a"] = "2"
	require.Equal(t, "1", given["a"])
}

func FuzzFile(f *testing.F) {
	for _, seed := range []string{"a: 1\n", `{"a":"1"}`, "apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n", "? a\n: b", "a: &a [*a]", "- \x00", "{", "<<: {}", "a: !!null x", "%YAML 1.1\n---\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		first, err := configresolve.ParseFile(content)
		if err != nil {
			require.Nil(t, first)
			return
		}
		again, err := configresolve.ParseFile(content)
		require.NoError(t, err)
		require.True(t, maps.Equal(first, again))
	})
}
