// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ownershipfile_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cleanup/ownershipfile"
)

var update = flag.Bool("update", false, "write the schema anew")

func Example() {
	own, err := ownershipfile.Parse([]byte(`
links:
- name: acme[0-9a-f]{8}
  kind: veth
routes:
- {table: 254, type: any, dst: any, link: any, gateway: any, protocol: 80}
`))
	fmt.Println(own.Links[0].Name, own.Routes[0].Protocol, err)

	_, err = ownershipfile.Parse([]byte("links:\n- nmae: acme.*\nfile: [/opt/cni/bin/acme]\n"))
	fmt.Println(err)
	// Output:
	// acme[0-9a-f]{8} 80 <nil>
	// invalid ownership file: line 2: field nmae not found
	// line 3: field file not found
}

func TestSEC9_OwnershipFileWithMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    []string
	}{
		"empty":            {"", []string{"it owns nothing"}},
		"a comment":        {"# nothing yet\n", []string{"it owns nothing"}},
		"null":             {"null\n", []string{"it owns nothing"}},
		"empty lists":      {"links: []\npins:\n", []string{"it owns nothing"}},
		"a list":           {"- links\n", []string{"line 1: cannot unmarshal"}},
		"no YAML":          {"links: [\n", []string{"line 1"}},
		"two documents":    {"pins: [a]\n---\npins: [b]\n", []string{"line 3 starts a second document"}},
		"twice":            {"pins: [a]\npins: [b]\n", []string{`line 2: mapping key "pins" already defined at line 1`}},
		"names of Go":      {"Pins: [a]\nchainprefixes: [B]\n", []string{"line 1: field Pins not found", "line 2: field chainprefixes not found"}},
		"types":            {"pins: a\nroutes:\n- table: -1\n  type: 2\n", []string{"line 1: cannot unmarshal !!str `a`", "line 3: cannot unmarshal !!int `-1` into uint32"}},
		"a rule of null":   {"links:\n- \n", []string{"it owns nothing"}},
		"an empty rule":    {"links:\n- {}\n", []string{"it needs a name"}},
		"everybody's":      {"routes:\n- {table: 254, type: any, dst: any, link: any, gateway: any}\n", []string{"would match routes of other owners"}},
		"the node's":       {"stateDirs: [/etc]\n", []string{`"/etc" would match the path /etc/`, "which is the node's"}},
		"many of one node": {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\npins: [*b]\n", []string{"line 1: field a not found"}},
	} {
		t.Run(name, func(t *testing.T) {
			own, err := ownershipfile.Parse([]byte(c.content))
			require.ErrorIs(t, err, ownershipfile.ErrInvalid)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.ErrorContains(t, err, "ownership file: ")
			require.Equal(t, cleanup.Ownership{}, cleanup.Ownership{Programs: own.Programs, Routes: own.Routes, StateDirs: own.StateDirs})
		})
	}
}

// An ownership written as JSON can be read as a file: the names are the same.
func TestOwnershipFileInJSON(t *testing.T) {
	want := cleanup.Cilium()
	want.NetNS, want.XFRM = cleanup.CiliumOnRequest().NetNS, cleanup.CiliumOnRequest().XFRM
	want.Rules = append(want.Rules, cleanup.PolicyRule{Table: 7, From: "host", To: "10.0.0.0/8", Priority: 3, Not: true})
	want.Routes = append(want.Routes, cleanup.RouteRule{Table: 7, Type: "any", Dst: "any", Gateway: "10.0.0.1", Link: "x"})
	want.RuleComments = []string{"acme: *"}
	want.NFTables = []cleanup.NFTable{{Family: "ip", Name: "acme"}}
	want.Exceptions = []cleanup.Exception{{Kind: "link", Name: "cni0"}}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[cleanup.Ownership]()) {
		require.False(t, reflect.ValueOf(want).FieldByIndex(field.Index).IsZero(), field.Name)
	}
	text, err := json.Marshal(want)
	require.NoError(t, err)
	own, err := ownershipfile.Parse(text)
	require.NoError(t, err)
	require.Equal(t, want, own)
}

func FuzzParse(f *testing.F) {
	f.Add("pins: [a]\n")
	f.Add("links: [{name: 'x.*', kind: veth}]\nrules: [{table: 7, from: host}]\n")
	f.Add("{\"stateDirs\":[\"/\"]}")
	f.Add(`{"links":[{"name":"(((("}],"netNS":["[","cni-*"],"pins":["../*"]}`)
	f.Add(`{"routes":[{"table":7,"type":"any","dst":"any","gateway":"fe80::1"}],"rules":[{"table":7,"from":"::/1","to":"host"}],"nfTables":[{"family":"ip","name":"x"}]}`)
	f.Fuzz(func(t *testing.T, content string) {
		own, err := ownershipfile.Parse([]byte(content))
		if err != nil {
			return
		}
		require.NoError(t, own.Validate())
		for _, dir := range own.StateDirs {
			require.True(t, strings.HasPrefix(dir, "/") && dir != "/", dir)
		}
	})
}

// The schema contains the comment of each field.
func TestSchemaIsTheStructs(t *testing.T) {
	schema := schemaOf(reflect.TypeFor[cleanup.Ownership](), comments(t))
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", "What an agent owns on a node"
	want, err := json.MarshalIndent(schema, "", "  ")
	require.NoError(t, err)
	const file = "ownership.schema.json"
	if *update {
		require.NoError(t, os.WriteFile(file, append(want, '\n'), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want)+"\n", string(have), "go test ./cleanup/ownershipfile -run Schema -update rewrites it")
}

func schemaOf(typ reflect.Type, comments map[string]string) map[string]any {
	switch typ.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Uint8, reflect.Uint32:
		return map[string]any{"type": "integer", "minimum": 0, "maximum": uint64(1)<<typ.Bits() - 1}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(typ.Elem(), comments)}
	}
	properties, required := map[string]any{}, []string{}
	for _, field := range reflect.VisibleFields(typ) {
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		property := schemaOf(field.Type, comments)
		if text := comments[typ.Name()+"."+field.Name]; text != "" {
			property["description"] = text
		}
		if properties[name] = property; option == "" {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// comments returns the comments of the fields of package cleanup's structs, as plain text.
func comments(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob("../ownership*.go")
	require.NoError(t, err)
	link := regexp.MustCompile(`\[([\w.]+)\]`)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, id := range field.Names {
						out[spec.Name.Name+"."+id.Name] = link.ReplaceAllString(strings.TrimSpace(field.Doc.Text()), "$1")
					}
				}
			}
			return true
		})
	}
	return out
}
