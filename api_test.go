// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package slipway_test

import (
	"flag"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write API.txt or CODES.md anew")

const apiFile = "API.txt"

// API.txt lists the exported API on Linux, one line per name, so that a change shows where it
// is made. make api rewrites it.
func TestTheAPIIsAsListed(t *testing.T) {
	sources(t) // otherwise the test's cached result would survive a change of them
	exports := map[string]string{}
	var packages []string
	for _, dir := range []string{".", "bootstrap/otel", "bootstrap/prom"} {
		packages = append(packages, exported(t, dir, exports)...)
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var b strings.Builder
	for _, path := range packages {
		pkg, err := imports.Import(path)
		require.NoError(t, err)
		b.WriteString(strings.Join(listing(pkg), "\n") + "\n")
	}
	if *update {
		require.NoError(t, os.WriteFile(apiFile, []byte(b.String()), 0o644))
	}
	listed, err := os.ReadFile(apiFile)
	require.NoError(t, err)
	for line := range strings.Lines(string(listed) + b.String()) {
		if strings.Contains("\n"+string(listed), "\n"+line) != strings.Contains("\n"+b.String(), "\n"+line) {
			t.Errorf("changed, so run make api, and name it in CHANGELOG.md: %s", line)
		}
	}
}

// exported builds the packages of the module in dir, stores the file with each one's types in
// exports, and returns the packages that others may import.
func exported(t *testing.T, dir string, exports map[string]string) (packages []string) {
	t.Helper()
	cmd := exec.Command("go", "list", "-C", dir, "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.Name}}\t{{if .Module}}{{.Module.Main}}{{end}}", "./...")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	notOurs := regexp.MustCompile(`(^|/)(internal|examples)(/|$)`)
	for line := range strings.Lines(string(out)) {
		field := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		path, name, main := field[0], field[2], field[3] == "true"
		exports[path] = field[1]
		if main && name != "main" && path != module && !notOurs.MatchString(path) {
			packages = append(packages, path)
		}
	}
	slices.Sort(packages)
	return packages
}

// listing returns a sorted line for each exported name, field and method of a package.
func listing(pkg *types.Package) (lines []string) {
	in := func(p *types.Package) string {
		if p == pkg {
			return ""
		}
		return p.Name()
	}
	add := func(parts ...string) {
		lines = append(lines, strings.TrimPrefix(pkg.Path(), module+"/")+": "+strings.Join(parts, " "))
	}
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		switch object := object.(type) {
		case *types.Const:
			add(types.ObjectString(object, in), "=", object.Val().ExactString())
		case *types.TypeName:
			typeLines(object, in, add)
		default:
			add(types.ObjectString(object, in))
		}
	}
	slices.Sort(lines)
	return lines
}

func typeLines(object *types.TypeName, in types.Qualifier, add func(...string)) {
	head := "type " + types.TypeString(object.Type(), in)
	switch under := object.Type().Underlying().(type) {
	case *types.Struct:
		add(head, "struct")
		for field := range under.Fields() {
			if field.Exported() {
				add(head+"."+field.Name(), types.TypeString(field.Type(), in))
			}
		}
	case *types.Interface:
		add(head, "interface")
		for embedded := range under.EmbeddedTypes() {
			add(head, "has", types.TypeString(embedded, in))
		}
		for method := range under.ExplicitMethods() {
			if method.Exported() {
				add(types.ObjectString(method, in))
			}
		}
	default:
		add(head, types.TypeString(under, in))
	}
	if types.IsInterface(object.Type()) {
		return
	}
	for selection := range types.NewMethodSet(types.NewPointer(object.Type())).Methods() {
		if method := selection.Obj(); method.Exported() && len(selection.Index()) == 1 {
			add(types.ObjectString(method, in))
		}
	}
}

// Before 1.0 a name may change in a minor version: CHANGELOG.md names each that has changed
// since the last version. A history without versions, such as a shallow clone's, tells nothing,
// and before the first version nothing was promised.
func TestTheChangelogNamesWhatTheAPIHasChanged(t *testing.T) {
	git := func(args ...string) (string, bool) {
		out, err := exec.Command("git", args...).Output()
		return strings.TrimSpace(string(out)), err == nil
	}
	// Of HEAD's parent, since HEAD itself may be the version; its section has the version's
	// name.
	version, known := git("describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD^")
	was, listed := git("show", version+":"+apiFile)
	if !known || !listed {
		t.Log("no earlier version lists its API")
		return
	}
	is, err := os.ReadFile(apiFile)
	require.NoError(t, err)
	changelog, err := os.ReadFile("CHANGELOG.md")
	require.NoError(t, err)
	newer, _, found := strings.Cut(string(changelog), "\n## "+version)
	require.True(t, found, "CHANGELOG.md has a section for %s", version)
	for _, name := range changedNames(was, string(is)) {
		require.Regexp(t, `\b`+name+`\b`, newer, "CHANGELOG.md does not name %s, which has changed since %s", name, version)
	}
}

var apiLine = regexp.MustCompile(`^(\S+: )(?:const|func|type|var) (?:\(\*?(\w+)[^)]*\)\.)?(\w+)(?:\.(\w+))?`)

// changedNames returns the names in lines that only one of the listings has, leaving out fields
// and methods of added or removed types.
func changedNames(was, is string) (names []string) {
	lines := func(listing string) (lines, types map[string]bool) {
		lines, types = map[string]bool{}, map[string]bool{}
		for line := range strings.Lines(listing) {
			lines[line] = true
			if m := apiLine.FindStringSubmatch(line); m[2] == "" {
				types[m[1]+m[3]] = true
			}
		}
		return lines, types
	}
	before, typesBefore := lines(was)
	after, typesAfter := lines(is)
	for line := range strings.Lines(was + is) {
		m := apiLine.FindStringSubmatch(line)
		of, name := m[2], m[3]
		if m[4] != "" {
			of, name = m[3], m[4]
		}
		isMember := of != "" && typesBefore[m[1]+of] != typesAfter[m[1]+of]
		if before[line] != after[line] && !isMember && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestWhichNamesOfTheAPIHaveChanged(t *testing.T) {
	was := "a: func (*T).M() error\na: func F()\na: type T struct\na: type T.F int\nb: type T interface\n"
	require.Empty(t, changedNames(was, was))
	for want, is := range map[string]string{
		"M":   strings.Replace(was, "M() error", "M()", 1),
		"F":   strings.Replace(was, "T.F int", "T.F string", 1),
		"F G": strings.Replace(was, "T.F int", "T.G int", 1),
		"T":   "a: func F()\nb: type T interface\n",
		"U":   was + "b: func (U).M()\nb: type U struct\nb: type U.G int\n",
		"V":   was + "b: var V error\n",
		"C":   was + "b: const C untyped int = 1\n",
		"Get": was + "b: func Get[T any](key string) T\n",
	} {
		require.Equal(t, strings.Fields(want), changedNames(was, is), is)
		require.Equal(t, strings.Fields(want), changedNames(is, was), is)
	}
}
