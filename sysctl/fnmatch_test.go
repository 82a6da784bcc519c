// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/sysctl"
)

// What fnmatch(3) of glibc says in the C locale.
func TestAPatternMatchesAsFnmatchHasIt(t *testing.T) {
	for _, tc := range []struct {
		pattern     string
		yes, no     []string
		description string
	}{
		{"[]l]a", []string{"]a", "la"}, []string{"aa", "[a"}, "a bracket that closes comes first, and belongs to it"},
		{"[!]l]a", []string{"aa"}, []string{"]a", "la"}, "also after a !"},
		{"[[:alpha:]_]*", []string{"a", "Z9", "_"}, []string{"9", "-"}, "a class and more"},
		{"x[[:digit:][:upper:]]", []string{"x0", "xA"}, []string{"xa", "x"}, "two classes"},
		{"x[[:xdigit:]]", []string{"xf", "xF", "x9"}, []string{"xg"}, "hexadecimal"},
		{"x[^[:alnum:]]", []string{"x_", "x:"}, []string{"x1", "xa"}, "all but a class"},
		{"x[[:none:]]", nil, []string{"x", "x[", "xn", "x:"}, "a class that there is not"},
		{"x[[:a]y", []string{"x[y", "x:y", "xay"}, []string{"x:ay"}, "no class, since nothing closes it"},
		{"[a-c]x", []string{"ax", "bx", "cx"}, []string{"dx", "-x"}, "a range"},
		{"[c-a]x", nil, []string{"ax", "bx", "cx"}, "a range that is empty"},
		{"[a-]x", []string{"ax", "-x"}, []string{"bx"}, "a dash at the end"},
		{"[-a]x", []string{"ax", "-x"}, []string{"bx"}, "a dash at the beginning"},
		{"[[=a=]-c]x", []string{"ax", "bx"}, []string{"dx", "=x"}, "an equivalence class"},
		{"[[.-.]]x", []string{"-x"}, []string{".x"}, "a collating symbol"},
		{`[\]]x`, []string{"]x"}, []string{`\x`}, "an escape in brackets"},
		{`lxc\*?`, []string{"lxc*a"}, []string{"lxcaa", `lxc\a`}, "an escape"},
		{`x*\`, nil, []string{"x", `x\`}, "an escape of nothing"},
		{"a[bc?", []string{"a[bcd"}, []string{"abd", "acd"}, "nothing closes the bracket"},
		{"a*b*c?", []string{"abcd", "axxbxbcbcc"}, []string{"abc", "acbd"}, "stars"},
		{"?.x", []string{"\xff.x"}, []string{"ä.x"}, "a byte, not a character"},
		{"*x", []string{"ax"}, []string{".x"}, "a leading dot"},
		{"[.]x", nil, []string{".x"}, "a leading dot in brackets"},
		{`\.*`, []string{".x"}, []string{"x"}, "a leading dot that is escaped"},
	} {
		matches := func(name string) bool {
			fake := bootstraptest.NewKernel()
			fake.PutValue("test."+strings.ReplaceAll(name, ".", "/"), "0")
			changes, err := sysctl.Kernel{Files: fake}.Diff(sysctl.Setting{Key: sysctl.Key("test/" + tc.pattern), Value: "1"})
			require.NoError(t, err)
			return len(changes) == 1
		}
		for _, name := range tc.yes {
			require.True(t, matches(name), "%s: %q and %q", tc.description, tc.pattern, name)
		}
		for _, name := range tc.no {
			require.False(t, matches(name), "%s: %q and %q", tc.description, tc.pattern, name)
		}
	}
}
