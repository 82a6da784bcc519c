// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package slipway_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/flock"
)

var _ interface {
	error
	Code() string // what bootstrap.Code asks an error for
} = (*flock.HeldError)(nil)

// codePackages are the first words of codes, in the order of the table.
var codePackages = []string{
	"plan", "lock", "ledger", "host", "config", "kube", "gate", "cgroup", "bpffs", "bpfmap", "sysctl", "hostpath", "module", "cni", "cri", "cleanup", "preflight",
}

// CODES.md is generated from the table, by make codes.
func TestPLAN18_CodesAreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Codes\n\nFor operators: the `code` of a failure in a report, in its JSON and in logs is a stable name of its cause, by which the failures of many nodes can be grouped. " +
		"The error's text names the object and the details. The general codes of `plan` are used where no more specific cause is known; " +
		"programs that use the packages may define codes of their own. A code never changes its meaning. `make codes` generates this page from the code.\n\n" +
		"| code | cause | remedy |\n|---|---|---|\n")
	for _, m := range code.Table() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.Code, m.Cause, m.Remedy)
	}
	if *update {
		require.NoError(t, os.WriteFile("CODES.md", []byte(b.String()), 0o644))
	}
	page, err := os.ReadFile("CODES.md")
	require.NoError(t, err)
	require.Equal(t, b.String(), string(page), "run make codes")
}

func TestCodesHaveTheirFormAndNeverRepeat(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*$`)
	seen, place := map[string]bool{}, 0
	for _, m := range code.Table() {
		require.Regexp(t, form, m.Code)
		require.Equal(t, m.Code, code.Of(code.New(m.Code, "x")), "it has the form of a code")
		require.False(t, seen[m.Code], "%s is listed twice", m.Code)
		seen[m.Code] = true
		word, _, _ := strings.Cut(m.Code, ".")
		at := slices.Index(codePackages, word)
		require.GreaterOrEqual(t, at, place, "%s: by package, in the order of the list above", m.Code)
		place = at
		for _, sentence := range []string{m.Cause, m.Remedy} {
			require.Regexp(t, `^[^|\n]+\.$`, sentence, m.Code)
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Values(codeConstants(t))), slices.Collect(maps.Keys(seen)), "each constant is in the table")
}

// codeConstants maps the names of internal/code's constants to their values.
func codeConstants(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, s := range sources(t) {
		if s.path != "internal/code/table.go" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				found[spec.Names[0].Name] = text
			}
			return true
		})
	}
	return found
}

// Code that gives an error a code uses a constant of the table, and each constant is used.
func TestEveryCodeIsInTheTableAndIsUsed(t *testing.T) {
	constants, used := codeConstants(t), map[string]bool{}
	for _, s := range sources(t) {
		if s.isTest() || s.dir() == "internal/code" || !slices.Contains(imports(s), module+"/internal/code") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "code" && constants[n.Sel.Name] != "" {
					used[n.Sel.Name] = true
				}
			case *ast.CallExpr:
				if isSelector(n.Fun, "code", "New") || isSelector(n.Fun, "code", "Wrap") || isSelector(n.Fun, "code", "Errorf") {
					if _, literal := n.Args[0].(*ast.BasicLit); literal {
						t.Errorf("%s: the code is not a constant of internal/code", s.at(n))
					}
				}
			}
			return true
		})
	}
	for name, text := range constants {
		if !used[name] {
			t.Errorf("%s, %s: no error uses it", name, text)
		}
	}
}

// A Code method on an error of ours returns a constant of the table, and any text that looks
// like a code is one, in tests, examples and documentation too.
func TestEveryLiteralCodeIsInTheTable(t *testing.T) {
	var known []string
	for _, m := range code.Table() {
		known = append(known, m.Code)
	}
	like := regexp.MustCompile(`^(` + strings.Join(codePackages, "|") + `)\.[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, s := range sources(t) {
		if s.dir() == "internal/code" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncDecl); ok && !s.isTest() && f.Recv != nil && f.Name.Name == "Code" && s.dir() != "bootstrap" {
				ast.Inspect(f, func(n ast.Node) bool {
					if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && text.Value != `""` {
						t.Errorf("%s: the code is not a constant of internal/code", s.at(text))
					}
					return true
				})
			}
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err == nil && like.MatchString(text) && !slices.Contains(known, text) && !fileName.MatchString(text) {
				t.Errorf("%s: %q looks like a code but is not in the table", s.at(literal), text)
			}
			return true
		})
	}
}

// fileName matches file names that look like codes.
var fileName = regexp.MustCompile(`\.(json|yaml|d|procs|controllers)$`)
