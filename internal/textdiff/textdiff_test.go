// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package textdiff_test

import (
	"fmt"
	"strings"
	"testing"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/textdiff"
)

func TestPLAN4_ADifferenceIsInTheUnifiedFormat(t *testing.T) {
	file := func(text string) textdiff.Side { return textdiff.Side{Name: "/f", Text: text, Size: int64(len(text))} }
	about := func(s textdiff.Side, about, sum string) textdiff.Side { s.About, s.Sum = about, sum; return s }
	const names, isNew = "--- /f\n+++ /f\n", "--- /dev/null\n+++ /f\n"
	large := strings.Repeat("x\n", textdiff.MaxText/2) + "y"
	for want, sides := range map[string][2]textdiff.Side{
		"":                                      {file("same"), file("same")},
		names + "@@ -1,2 +1,2 @@\n a\n-b\n+c\n": {file("a\nb\n"), file("a\nc\n")},
		names + "@@ -1 +1 @@\n-a\n+b\n":         {file("a"), file("b")}, // as most values of a configuration
		names + "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n":                 {file("a"), file("a\n")},
		isNew + "@@ -0,0 +1 @@\n+a\n":                                                 {{}, file("a")},
		isNew:                                                                         {{}, file("")},
		"--- /f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n":                                  {file("a"), {}},
		"old mode 0600\nnew mode 0644\n" + names:                                      {about(file("a"), "mode 0600", "1"), about(file("a"), "mode 0644", "1")},
		"new mode 0644\n" + isNew + "@@ -0,0 +1 @@\n+a\n":                             {{}, about(file("a"), "mode 0644", "1")},
		names + "Binary files differ: 1 bytes, 3 bytes\n":                             {file("a"), file("a\x00b")},
		names + "Files differ: 1 bytes, 65537 bytes, which is too much to be shown\n": {file("a"), file(large)},
		names + "The content is not shown: its owner says so\n":                       {file("a"), {Name: "/f", Hidden: "its owner says so"}},
		"--- /a\\nb\n+++ /a\\nb\n@@ -1 +1 @@\n-a\n+\\x1b[2J\\t\\u202e https://h\n":    {{Name: "/a\nb", Text: "a"}, {Name: "/a\nb", Text: "\x1b[2J\t\u202e https://u:p@h"}},
	} {
		all := map[string]string{}
		collector(t, all).Add("object", sides[0], sides[1])
		require.Equal(t, want, all["object"])
	}
	require.Nil(t, textdiff.From(textdiff.With(t.Context(), nil, nil)))
}

// collector adds the differences to those of their objects.
func collector(t *testing.T, all map[string]string) *textdiff.Collector {
	return textdiff.From(textdiff.With(t.Context(), udiff.Unified, func(object, difference string) { all[object] += difference }))
}

func TestSEC6_SEC8_NoSecretIsInADifferenceAndItHasABound(t *testing.T) {
	const hidden = "--- f\n+++ f\nThe content is not shown: it may be secret\n"
	for text, want := range map[string]string{
		"token: S3CRET x\n":                              "+token: (masked)\n",
		`{"a": 1, "k8s_auth_token":"S3CRET", "b": 2}`:    `+{"a": 1, "k8s_auth_token":(masked)` + "\n",
		"net.ipv4.tcp_fastopen_key = S3CRET\n":           "+net.ipv4.tcp_fastopen_key = (masked)\n",
		"etcd.Private_Key='S3CRET'\n":                    "+etcd.Private_Key=(masked)\n",
		"- client-key-data: S3CRET\n":                    "+- client-key-data: (masked)\n",
		"enable-token: true\ntoken-file: /run/x\n":       "+enable-token: true\n+token-file: /run/x\n",
		"\"token\": \"\",\n":                             "+\"token\": \"\",\n",
		"token:\n  S3CRET\n":                             hidden,
		"token: |-\n  S3CRET\n":                          hidden,
		"token: \"S3C\n  RET\"\n":                        hidden,
		"tokens: [\n  S3CRET ]\n":                        hidden,
		"-----BEGIN EC PRIVATE KEY-----\nS3CRET\n-----E": hidden,
		"Authorization: Bearer S3CRET\n":                 "+Authorization: (masked)\n",
		"PresharedKey=S3CRET\n":                          "+PresharedKey=(masked)\n",
		`{"config": "{\"token\":\"S3CRET\"}"}`:           `+{"config": "{\"token\":(masked)` + "\n",
		"- name: DB_PASSWORD\n  value: S3CRET\n":         hidden,
		`"args": ["--token", "S3CRET"]`:                  hidden,
		"token = \"\"\"\nS3CRET\n\"\"\"\n":               hidden,
		"- token: abc\n\n    S3CRET\n":                   hidden,
		"token: !!binary |\n  S3CRET\n":                  hidden,
		"TOKEN=abc\\\nS3CRET\n":                          hidden,
		"token: \"a\\\"b\n S3CRET\"\n":                   hidden,
		"LS0tLS1CRUdJTiBSU0EgS3CRET":                     hidden,
		"- token: S3CRET\n  ca: LS0tLS1CRUdJTiBDRVJU\n":  "+- token: (masked)\n+  ca: LS0tLS1CRUdJTiBDRVJU\n",
		"dir: /run/secrets/token\nkey: value\n":          "+dir: /run/secrets/token\n+key: value\n",
	} {
		for _, sides := range [][2]string{{"x\n", text}, {text, "x\n"}} {
			all := map[string]string{}
			collector(t, all).Add("object", textdiff.Side{Name: "f", Text: sides[0]}, textdiff.Side{Name: "f", Text: sides[1]})
			if sides[1] == text || want == hidden {
				require.Contains(t, all["object"], want)
			}
			require.NotContains(t, all["object"], "S3C", text)
		}
	}
	all := map[string]string{}
	c := collector(t, all)
	for _, secret := range []string{"/cfg/etcd-password", "net.ipv4.tcp_fastopen_key", "/etc/agent.kubeconfig"} {
		c.Add(secret, textdiff.Side{Name: secret, Text: "true"}, textdiff.Side{Name: secret, Text: "S3CRET"})
	}
	c.Add("plain", textdiff.Side{Name: "/cfg/enable-secret", Text: "true"}, textdiff.Side{Name: "/cfg/enable-secret", Text: "false"})
	require.NotContains(t, fmt.Sprint(all), "S3CRET")
	require.Contains(t, all["plain"], "-true\n+false\n")
	for range 100 {
		c.Add("many", textdiff.Side{}, textdiff.Side{Name: "f", Text: strings.Repeat("line\n", 10_000)})
	}
	require.Less(t, len(all["many"]), 2<<20)
	require.Equal(t, 1, strings.Count(all["many"], "Further differences are not shown: there are too many\n"))
}
