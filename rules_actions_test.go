// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package slipway_test

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/bpfmap"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/sysctl"
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

// actions maps the library's exported types that are a bootstrap.Action, such as
// "cniinstall.Install", to their methods, by directory and name.
func actions(t *testing.T) map[string]map[string]string {
	t.Helper()
	found := map[string]map[string]string{}
	for dir, files := range public(t) {
		for name, has := range methods(files) {
			if has["Apply"] == "context.Context -> error" && has["Check"] == "context.Context -> []string, error" {
				found[dir+"."+name] = has
			}
		}
	}
	require.Contains(t, found, "cniinstall.Install")
	return found
}

// An action that declares neither its records nor where it acts would change the wrong side of
// a container, and could not be undone: the exceptions here are deliberate.
func TestEveryActionSaysWhatItRecordsOrWhereItActs(t *testing.T) {
	onPurpose := map[string]string{
		"bootstrap/hostlocal.Store":  "it enters the host by its own field Enter, since it asks the runtime outside; the addresses it releases had no owner",
		"bootstrap/kube.Definitions": "it changes objects of the cluster, which outlive the node and its journal",
		"bootstrap/kube.Node":        "it changes an object of the cluster, which outlives the node and its journal",
	}
	for name, has := range actions(t) {
		_, excused := onPurpose[name]
		says := has["Kinds"] != "" || has["Namespaces"] != "" || has["Revert"] != ""
		switch {
		case !says && !excused:
			t.Errorf("%s has neither Kinds nor Namespaces nor Revert", name)
		case says && excused:
			t.Errorf("%s declares it by now: take it off the list", name)
		}
		delete(onPurpose, name)
	}
	require.Empty(t, onPurpose, "they are no longer actions")
}

// The handler in an action's package undoes the kinds that the action records, where the action
// made them.
func TestActionsAndHandlersAgree(t *testing.T) {
	kernel := bootstraptest.NewKernel()
	agree := map[string]map[bootstrap.Recorder]journal.Handler{ // in memory too, where no namespace is entered
		"bootstrap/bpfmap":        {&bpfmap.Pinned{}: bpfmap.Handler{}},
		"bootstrap/hostpath":      {&hostpath.Paths{}: hostpath.Handler{}, &hostpath.Content{}: hostpath.Handler{}},
		"bpffs":                   {&bpffs.Mount{}: bpffs.Handler{}, &bpffs.Mount{Kernel: kernel}: bpffs.Handler{Kernel: kernel}},
		"cgroup":                  {&cgroup.Mount{}: cgroup.Handler{}, &cgroup.Mount{Kernel: kernel}: cgroup.Handler{Kernel: kernel}},
		"cniinstall":              {&cniinstall.Install{}: cniinstall.Handler{}},
		"configresolve/configdir": {&configdir.Writer{}: configdir.Handler{}},
		"sysctl": {
			&sysctl.DropIn{}: sysctl.Handler{}, &sysctl.DropIn{Kernel: sysctl.Kernel{Files: kernel}}: sysctl.Handler{Kernel: sysctl.Kernel{Files: kernel}},
			&sysctl.Settings{}: sysctl.Handler{}, &sysctl.Settings{Kernel: sysctl.Kernel{Files: kernel}}: sysctl.Handler{Kernel: sysctl.Kernel{Files: kernel}},
		},
	}
	for dir, pairs := range agree {
		for action, handler := range pairs {
			require.NotEmpty(t, action.Kinds(), "%s: %T", dir, action)
			require.Subset(t, handler.Kinds(), action.Kinds(), "%s: %T", dir, action)
			var inside []string
			if hosted, ok := action.(bootstrap.Hosted); ok {
				inside = hosted.Namespaces()
			}
			for _, namespace := range handler.Namespaces() {
				require.Contains(t, inside, namespace, "%s: %T", dir, action)
			}
		}
	}
	for dir, files := range public(t) {
		if has := methods(files)["Handler"]; has["Look"] == "" || has["Kinds"] == "" {
			continue
		}
		require.Contains(t, agree, dir, "it has a Handler")
	}
	for name, has := range actions(t) {
		dir, typ, _ := strings.Cut(name, ".")
		if has["Kinds"] == "" || dir == "bootstrap" || dir == "bootstrap/gate" || dir == "bootstrap/cri" || dir == "bootstrap/preflight" || typ == "AgentConf" { // the last four record nothing
			continue
		}
		listed := false
		for action := range agree[dir] {
			listed = listed || strings.HasSuffix(fmt.Sprintf("%T", action), "."+typ)
		}
		require.True(t, listed, "%s records, and is not in the list", name)
	}
}

// The optional interfaces of an action are asserted in its package's external tests, where
// others see them.
func TestWhatActionsOfferIsAsserted(t *testing.T) {
	offers := map[string]string{"Kinds": "Recorder", "Namespaces": "Hosted", "Places": "Placed", "Advise": "Adviser"}
	asserted := map[string][]string{}
	for dir, files := range public(t) {
		for _, s := range files {
			if s.isTest() && strings.HasSuffix(s.file.Name.Name, "_test") {
				asserted[dir] = append(asserted[dir], assertions(s)...)
			}
		}
	}
	for name, has := range actions(t) {
		dir, typ, _ := strings.Cut(name, ".")
		if dir == "bootstrap" || dir == "bootstrap/bootstraptest" {
			continue
		}
		for method, offer := range offers {
			if has[method] != "" && !slices.Contains(asserted[dir], "bootstrap."+offer+" = "+typ) {
				t.Errorf("%s: no external test has `var _ bootstrap.%s = ...` for it", name, offer)
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

// A leaf is also used without bootstrap: it imports the journal and nothing else of it.
func TestLeavesImportTheJournalOnly(t *testing.T) {
	for _, s := range sources(t) {
		leaf, _, _ := strings.Cut(s.path, "/")
		if s.isTest() || !slices.Contains(leaves, leaf) {
			continue
		}
		for _, name := range imports(s) {
			if inside, ok := strings.CutPrefix(name, module+"/bootstrap"); ok && inside != "/journal" {
				t.Errorf("%s: imports %s", s.path, name)
			}
		}
	}
}
