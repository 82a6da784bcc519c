// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package slipway_test

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// methods maps the exported types of a package to their methods' signatures.
func methods(files []source) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, s := range files {
		if s.isTest() {
			continue
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() || !exportedReceiver(f) {
				continue
			}
			receiver := strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*")
			if all[receiver] == nil {
				all[receiver] = map[string]string{}
			}
			all[receiver][f.Name.Name] = signature(f.Type)
		}
	}
	return all
}

// signature is a function's signature without parameter names.
func signature(f *ast.FuncType) string {
	list := func(fields *ast.FieldList) string {
		var all []string
		if fields != nil {
			for _, field := range fields.List {
				for range max(1, len(field.Names)) {
					all = append(all, types.ExprString(field.Type))
				}
			}
		}
		return strings.Join(all, ", ")
	}
	return list(f.Params) + " -> " + list(f.Results)
}

const (
	isWanter = "context.Context -> ledger.Wants, error" // the signature of Wants
	isCheck  = "context.Context -> []string, error"
	isChange = "context.Context -> error" // of Apply and Undo
)

// steps maps the library's exported types that a plan's step can have, such as
// "cniinstall.Install", to their methods, by directory and name.
func steps(t *testing.T) map[string]map[string]string {
	t.Helper()
	found := map[string]map[string]string{}
	for dir, files := range public(t) {
		for name, has := range methods(files) {
			if has["Wants"] == isWanter || has["Check"] == isCheck && (has["Apply"] == isChange || has["Wait"] == isChange) {
				found[dir+"."+name] = has
			}
		}
	}
	require.Equal(t, isWanter, found["cniinstall.Install"]["Wants"])
	require.Contains(t, found, "bootstrap/gate.Gate")
	return found
}

// An action that does not say where it acts would change the wrong side of a container: the
// exceptions here are deliberate. What has objects wants them, so that a plan records them.
func TestEveryActionSaysWhereItActs(t *testing.T) {
	onPurpose := map[string]string{
		"bootstrap/cri.Loaded":       "it asks the runtime, which has its own way into the host, and changes nothing",
		"bootstrap/hostlocal.Store":  "it enters the host by its own field Enter, since it asks the runtime outside; the addresses it releases had no owner",
		"bootstrap/kube.Definitions": "it changes objects of the cluster, which outlive the node and its ledger",
		"bootstrap/kube.Node":        "it changes an object of the cluster, which outlives the node and its ledger",
	}
	for name, has := range steps(t) {
		_, excused := onPurpose[name]
		says := has["Wants"] != "" || has["OnHost"] != "" || has["Undo"] != ""
		switch {
		case !says && !excused:
			t.Errorf("%s has neither Wants nor OnHost nor Undo", name)
		case says && excused:
			t.Errorf("%s says it by now: take it off the list", name)
		}
		delete(onPurpose, name)
	}
	require.Empty(t, onPurpose, "they are no longer actions")
}

// A wanter alone can be used without a plan, by ledger.Check and ledger.Apply, and the main
// ones of the leaves have both as methods. An uninstaller, which has no wanter, needs the kinds of its objects.
func TestEveryWanterIsWhole(t *testing.T) {
	all := public(t)
	for name, has := range steps(t) {
		dir, _, _ := strings.Cut(name, ".")
		if has["Wants"] == "" || strings.HasPrefix(dir, "bootstrap/bootstraptest") {
			continue
		}
		if isMain := !strings.Contains(dir, "/") && name != "sysctl.Settings"; isMain && (has["Check"] != isCheck || has["Apply"] != isChange) {
			t.Errorf("%s has no Check or no Apply", name)
		}
		for _, gone := range []string{"Undo", "OnHost", "Validate", "Revert"} {
			if has[gone] != "" {
				t.Errorf("%s has %s: the kinds of its objects say that", name, gone)
			}
		}
		if dir != "bootstrap/hostpath" && // its kind is never recorded
			slices.ContainsFunc(all[dir], makesKinds) && !slices.ContainsFunc(all[dir], exportsKinds) {
			t.Errorf("%s: its package exports no kinds of its objects", name)
		}
	}
}

// makesKinds reports whether a file describes a kind of objects.
func makesKinds(s source) bool {
	return !s.isTest() && strings.Contains(s.text, "ledger.Kind{")
}

// exportsKinds reports whether a file exports kinds, or a function that returns them.
func exportsKinds(s source) bool {
	return !s.isTest() && slices.ContainsFunc(s.file.Decls, func(decl ast.Decl) bool {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			return decl.Name.IsExported() && strings.HasSuffix(signature(decl.Type), "*ledger.Kind")
		case *ast.GenDecl:
			return slices.ContainsFunc(decl.Specs, func(spec ast.Spec) bool {
				v, ok := spec.(*ast.ValueSpec)
				return ok && strings.HasPrefix(v.Names[0].Name, "Kind")
			})
		}
		return false
	})
}

// The optional interfaces of a step are asserted in its package's external tests, where others
// see them.
func TestWhatStepsOfferIsAsserted(t *testing.T) {
	offers := map[string]string{
		"OnHost": "bootstrap.Hosted", "Advise": "bootstrap.Adviser", "Undo": "bootstrap.Undoer",
	}
	asserted := map[string][]string{}
	for dir, files := range public(t) {
		for _, s := range files {
			if s.isTest() && strings.HasSuffix(s.file.Name.Name, "_test") {
				asserted[dir] = append(asserted[dir], assertions(s)...)
			}
		}
	}
	for name, has := range steps(t) {
		dir, typ, _ := strings.Cut(name, ".")
		if dir == "bootstrap" || dir == "bootstrap/bootstraptest" {
			continue
		}
		for method, offer := range offers {
			if has[method] != "" && !slices.Contains(asserted[dir], offer+" = "+typ) {
				t.Errorf("%s: no external test has `var _ %s = ...` for it", name, offer)
			}
		}
	}
}

// assertions lists a file's assertions, such as "bootstrap.Hosted = Mount".
func assertions(s source) (all []string) {
	for _, decl := range s.file.Decls {
		vars, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range vars.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok || v.Type == nil || len(v.Values) != 1 || v.Names[0].Name != "_" {
				continue
			}
			value := v.Values[0]
			if pointer, ok := value.(*ast.UnaryExpr); ok {
				value = pointer.X
			}
			if literal, ok := value.(*ast.CompositeLit); ok {
				_, typ, _ := strings.Cut(types.ExprString(literal.Type), ".")
				all = append(all, types.ExprString(v.Type)+" = "+typ)
			}
		}
	}
	return all
}

// A leaf is also used without bootstrap: it imports the ledger and nothing else of it.
func TestLeavesImportTheLedgerOnly(t *testing.T) {
	for _, s := range sources(t) {
		leaf, _, _ := strings.Cut(s.path, "/")
		if s.isTest() || !slices.Contains(leaves, leaf) {
			continue
		}
		for _, name := range imports(s) {
			if inside, ok := strings.CutPrefix(name, module+"/bootstrap"); ok && inside != "/ledger" {
				t.Errorf("%s: imports %s", s.path, name)
			}
		}
	}
}
