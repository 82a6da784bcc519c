// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package layouts_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// row is the row of a layout in EVIDENCE.md.
type row struct{ title, runtime, plugin, conf, result string }

func (l layout) row(plugins string) row {
	r := l.all("containerd", "crio")[0]
	conf, _ := l.reads()
	if plugins == "" {
		plugins, _, _ = strings.Cut(strings.Join(r.args[2:], " "), " ")
	}
	return row{l.title, map[string]string{"containerd": "containerd", "crio": "CRI-O"}[r.verb], plugins, conf, l.result()}
}

func (l layout) result() string {
	remedies := l.all("remedy", "advice")
	if len(remedies) == 0 {
		return "works"
	}
	var flags []string
	for _, r := range remedies {
		flags = append(flags, "`"+strings.Join(r.args[1:], " ")+"`")
	}
	says := map[string]string{"remedy": "refused", "advice": "not used, as it says"}[remedies[0].verb]
	return "`" + remedies[0].args[0] + "` is " + says + "; works with " + strings.Join(flags, " or ")
}

const (
	begin = "<!-- what make layouts has shown -->\n"
	end   = "<!-- end of what make layouts has shown -->\n"
)

// table compares the table of this run with EVIDENCE.md's, or writes it there.
func table(t *testing.T, rows []row) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| node | runtime | plugins go to | configuration goes to | `apply` without flags |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | `%s` | `%s` | %s |\n", r.title, r.runtime, r.plugin, r.conf, r.result)
	}
	t.Log("\n" + b.String())
	const evidence = "../../../EVIDENCE.md"
	text, err := os.ReadFile(evidence)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, "%s has no %s", evidence, begin)
	was, after, found := strings.Cut(rest, end)
	require.True(t, found, "%s has no %s", evidence, end)
	if *update {
		require.NoError(t, os.WriteFile(evidence, []byte(before+begin+b.String()+end+after), 0o644))
		return
	}
	require.Equal(t, was, b.String(), "EVIDENCE.md's table is not that of this run (-update writes it)")
}
