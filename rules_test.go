// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package slipway_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/slipway-dev/slipway"

var leaves = []string{"bpffs", "cgroup", "cleanup", "cniinstall", "configresolve", "sysctl"}

// source is one parsed Go file of the project.
type source struct {
	path string // slash-separated, from the root
	text string
	file *ast.File
	fset *token.FileSet
}

func (s source) dir() string      { return path.Dir(s.path) }
func (s source) isTest() bool     { return strings.HasSuffix(s.path, "_test.go") }
func (s source) inExamples() bool { return strings.HasPrefix(s.path, "examples/") }

// isLibrary reports whether other modules import the file's package.
func (s source) isLibrary() bool {
	return !s.isTest() && !s.inExamples() && s.file.Name.Name != "main"
}

func (s source) at(n ast.Node) string { return s.fset.Position(n.Pos()).String() }

func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// parsed reads the files once for all tests.
var parsed = sync.OnceValues(func() (all []source, err error) {
	fset := token.NewFileSet()
	err = filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || isNestedModule(name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		all = append(all, source{filepath.ToSlash(name), string(text), file, fset})
		return nil
	})
	return all, err
})

// isNestedModule reports whether dir is a nested module, whose dependencies users of this
// module do not get.
func isNestedModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return dir != "." && err == nil
}

func imports(s source) []string {
	var list []string
	for _, i := range s.file.Imports {
		name, _ := strconv.Unquote(i.Path.Value)
		list = append(list, name)
	}
	return list
}

func TestEveryFileCarriesTheLicence(t *testing.T) {
	const header = "// SPDX-License-Identifier: Apache-2.0\n// Copyright 2026 The Slipway Authors\n\n"
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.text, header) {
			t.Errorf("%s: no licence header", s.path)
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	comments := map[string]int{}
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		if comments[s.dir()] += 0; s.file.Doc != nil {
			comments[s.dir()]++
		}
	}
	for dir, n := range comments {
		if n != 1 {
			t.Errorf("%s: %d package comments", dir, n)
		}
	}
}

func TestLibrariesHaveNoEffectsOfTheirOwn(t *testing.T) {
	banned := map[string][]string{
		"fmt": {"Print", "Printf", "Println"},
		"os":  {"Exit", "Getenv", "LookupEnv", "Environ", "Args", "Stdout", "Stderr", "Stdin"},
	}
	for _, s := range sources(t) {
		if !s.isLibrary() || isTestSupport(s.dir()) {
			continue
		}
		for _, name := range imports(s) {
			if name == "log" || name == "flag" || name == "os/signal" {
				t.Errorf("%s: a library imports %s", s.path, name)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				isSaid := s.dir() == "internal/waiting" && n.Sel.Name == "Stderr" // the one place
				if pkg, ok := n.X.(*ast.Ident); ok && !isSaid && pkg.Obj == nil && slices.Contains(banned[pkg.Name], n.Sel.Name) {
					t.Errorf("%s: a library uses %s.%s", s.at(n), pkg.Name, n.Sel.Name)
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "panic" && f.Obj == nil {
					t.Errorf("%s: a library panics", s.at(n))
				}
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					t.Errorf("%s: a library has an init function", s.at(n))
				}
			}
			return true
		})
	}
}

// isTestSupport reports whether the package serves tests only.
func isTestSupport(dir string) bool {
	return strings.HasSuffix(dir, "test") || dir == "internal/testns" || dir == "internal/snapshot" || proves(dir)
}

// proves reports whether the package proves the library, which must not import it.
func proves(dir string) bool { return strings.HasPrefix(dir+"/", "internal/verify/") }

func TestTheLibraryKnowsNothingOfItsProofs(t *testing.T) {
	for _, s := range sources(t) {
		for _, name := range imports(s) {
			if inside, ok := strings.CutPrefix(name, module+"/"); ok && proves(inside) && !proves(s.dir()) {
				t.Errorf("%s: imports %s", s.path, name)
			}
		}
	}
}

// Whatever the examples need, other programs need too, so it belongs in a package. The
// exception is the demo, which makes its node as tests do.
func TestExamplesAreWrittenAsByOthers(t *testing.T) {
	for _, s := range sources(t) {
		if !s.inExamples() || s.isTest() || s.dir() == "examples/nodeinit/demo" {
			continue
		}
		for _, name := range imports(s) {
			if strings.HasPrefix(name, module+"/internal/") {
				t.Errorf("%s: imports %s", s.path, name)
			}
		}
	}
}

// Functions that read a whole file or directory of any size are only for what the kernel itself
// shows: everything else is read through internal/input and internal/durable.
func TestNothingIsReadWithoutABound(t *testing.T) {
	kernels := []string{"bootstrap/hostns/nothost_linux.go"}
	unbounded := map[string][]string{
		"os": {"ReadFile", "ReadDir", "DirFS"}, "fs": {"ReadFile", "ReadDir", "WalkDir", "Glob"}, "filepath": {"Walk", "WalkDir", "Glob"},
	}
	for _, s := range sources(t) {
		if s.isTest() || isTestSupport(s.dir()) || slices.Contains(kernels, s.path) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Obj == nil && slices.Contains(unbounded[pkg.Name], sel.Sel.Name) {
				t.Errorf("%s: %s.%s reads without a bound", s.at(sel), pkg.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

// One package decides whether a program is trusted, and only that package executes programs. A
// command that nodeinit becomes is the caller's own.
func TestSEC11_OnlyOnePackageExecutesPrograms(t *testing.T) {
	executes := map[string][]string{
		"os": {"StartProcess"}, "syscall": {"Exec", "ForkExec", "StartProcess"}, "unix": {"Exec"},
	}
	for _, s := range sources(t) {
		if !s.isLibrary() || isTestSupport(s.dir()) || s.dir() == "internal/hosttool" {
			continue
		}
		if slices.Contains(imports(s), "os/exec") {
			t.Errorf("%s: executes by itself: internal/hosttool does", s.path)
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Obj == nil && slices.Contains(executes[pkg.Name], sel.Sel.Name) {
				t.Errorf("%s: %s.%s executes by itself: internal/hosttool does", s.at(sel), pkg.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

var skips = regexp.MustCompile(`\b(t|b|tb)\.Skip(f|Now)?\b`)

// A skip that CI cannot turn into a failure would let CI prove nothing: in each module.
func TestSkipsFailWhereNothingMayBeSkipped(t *testing.T) {
	files := 0
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".go" || filepath.ToSlash(name) == "internal/testns/skip.go" { // which reads the variable itself
			return err
		}
		files++
		text, err := os.ReadFile(name)
		for i, line := range strings.Split(string(text), "\n") {
			if skips.MatchString(line) && name != "rules_test.go" {
				t.Errorf("%s:%d: skip with testns.Skip, which fails if skips are not allowed", name, i+1)
			}
		}
		return err
	}))
	require.Greater(t, files, 500)
}

func TestErrorsAreWrapped(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			args := call.Args
			switch {
			case isSelector(call.Fun, "code", "Errorf"):
				args = args[1:]
			case !isSelector(call.Fun, "fmt", "Errorf"):
				return true
			}
			format, ok := args[0].(*ast.BasicLit)
			if !ok || strings.Contains(format.Value, "%w") {
				return true
			}
			for _, arg := range args[1:] {
				if id, ok := arg.(*ast.Ident); ok && (id.Name == "err" || strings.HasSuffix(id.Name, "Err")) {
					t.Errorf("%s: an error is formatted without %%w", s.at(call))
				}
			}
			return true
		})
	}
}

func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg && sel.Sel.Name == name
}

// Of client-go, no package uses the typed clients.
func TestClientGoStaysInKubeAndExamples(t *testing.T) {
	for _, s := range sources(t) {
		for _, name := range imports(s) {
			if strings.HasPrefix(name, "k8s.io/client-go/kubernetes") || strings.HasPrefix(name, "k8s.io/client-go/informers") {
				t.Errorf("%s: imports %s", s.path, name)
			}
			if !strings.HasPrefix(name, "k8s.io/") || s.inExamples() || s.file.Name.Name == "kube" || s.file.Name.Name == "kube_test" {
				continue
			}
			t.Errorf("%s: imports %s", s.path, name)
		}
	}
}

// dependencies lists all packages that pkg links.
func dependencies(t *testing.T, pkg string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", pkg)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, pkg)
	return strings.Fields(string(out))
}

func TestLeavesStandAlone(t *testing.T) {
	for _, pkg := range append([]string{"configresolve/configdir"}, leaves...) {
		leaf, _, _ := strings.Cut(pkg, "/")
		for _, dep := range dependencies(t, module+"/"+pkg) {
			inside := strings.TrimPrefix(dep, module+"/")
			other, _, _ := strings.Cut(inside, "/")
			switch {
			case strings.HasPrefix(dep, "k8s.io/"):
				t.Errorf("%s links %s", pkg, dep)
			case other == "bootstrap" && inside != "bootstrap/ledger":
				t.Errorf("%s links %s", pkg, inside)
			case pkg == leaf && other == leaf && inside != leaf && !strings.HasPrefix(inside, leaf+"/internal/"):
				t.Errorf("%s links its own %s", pkg, inside)
			case other != leaf && slices.Contains(leaves, other):
				t.Errorf("%s links the leaf %s", pkg, other)
			}
		}
	}
}

// The plan knows the ledger and the host, and neither of these knows the plan. Of others they
// link the system calls.
func TestThePlanTheLedgerAndTheHostNeedNothingElse(t *testing.T) {
	for _, pkg := range []string{"", "/ledger", "/hostns"} {
		pkg = module + "/bootstrap" + pkg
		allowed := []string{pkg}
		if pkg == module+"/bootstrap" {
			allowed = append(allowed, pkg+"/ledger", pkg+"/hostns")
		}
		for _, dep := range dependencies(t, pkg) {
			first, _, _ := strings.Cut(dep, "/")
			inside := strings.HasPrefix(dep, module+"/internal/") || strings.HasPrefix(dep, "golang.org/x/sys/")
			if strings.Contains(first, ".") && !inside && !slices.Contains(allowed, dep) {
				t.Errorf("%s links %s", pkg, dep)
			}
		}
	}
}

// The exception is the demo, which makes its node as tests do.
func TestProgramsLinkNothingThatIsForTests(t *testing.T) {
	for _, program := range []string{"examples/agent", "examples/nodeinit"} {
		for _, dep := range dependencies(t, module+"/"+program) {
			if dep == "testing" || strings.HasPrefix(dep, "github.com/stretchr/") {
				t.Errorf("%s links %s", program, dep)
			}
		}
	}
}

// public lists the importable packages.
func public(t *testing.T) map[string][]source {
	t.Helper()
	packages := map[string][]source{}
	for _, s := range sources(t) {
		if s.dir() == "." || strings.Contains("/"+s.path, "/internal/") || s.inExamples() {
			continue
		}
		packages[s.dir()] = append(packages[s.dir()], s)
	}
	return packages
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	for _, files := range public(t) {
		for _, s := range files {
			if s.isTest() {
				continue
			}
			for _, decl := range s.file.Decls {
				undocumented(s, decl, func(name string, n ast.Node) {
					t.Errorf("%s: %s has no comment that starts with its name", s.at(n), name)
				})
			}
		}
	}
}

func undocumented(s source, decl ast.Decl, report func(string, ast.Node)) {
	check := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		if !name.IsExported() {
			return
		}
		for _, doc := range docs {
			if doc != nil {
				return
			}
		}
		report(name.Name, name)
	}
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Name.IsExported() && exportedReceiver(decl) && (decl.Doc == nil || !startsWith(decl.Doc, decl.Name.Name)) {
			report(decl.Name.Name, decl)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				check(spec.Name, spec.Doc, decl.Doc)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					check(name, spec.Doc, spec.Comment, decl.Doc)
				}
			}
		}
	}
}

func startsWith(doc *ast.CommentGroup, name string) bool {
	text := strings.TrimSpace(doc.Text())
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}
	return strings.HasPrefix(text, name)
}

func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return true
	}
	typ := f.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return true
		}
	}
}

func TestEveryPackageHasAnExample(t *testing.T) {
	for dir, files := range public(t) {
		found := false
		for _, s := range files {
			for _, decl := range s.file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				found = found || ok && s.isTest() && strings.HasPrefix(f.Name.Name, "Example")
			}
		}
		if !found {
			t.Errorf("%s: no Example", dir)
		}
	}
}
