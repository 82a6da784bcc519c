// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package printable_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/printable"
)

func TestSEC8_LinesHoldNothingThatATerminalObeys(t *testing.T) {
	for in, want := range map[string]string{
		"eth0 é 日本 \\ \"":        "eth0 é 日本 \\ \"",
		"a\x1b[2Jb":              `a\x1b[2Jb`,
		"a\nnodeinit: all well":  `a\nnodeinit: all well`,
		"a\r\tb":                 `a\r\tb`,
		"a\u009b2J":              `a\u009b2J`, // the same in one character
		"a\x7f":                  `a\u007f`,
		"user\u202egnp.exe":      `user\u202egnp.exe`,
		"a\u2066b\u200bc\ufeff":  `a\u2066b\u200bc\ufeff`,
		"a\u2028b":               `a\u2028b`,
		"tag \U000e0001":         `tag \udb40\udc01`,
		"bad \xff\xfe\x80":       `bad \xff\xfe\x80`,
		"replacement \ufffd":     "replacement \ufffd",
		"https://u:p@h:6443/x@y": "https://h:6443/x@y",
		"get \"https://u:p@h\" and http://a:b@c@d/, then x@y": "get \"https://h\" and http://d/, then x@y",
		"https://u@\x1b": `https://\x1b`,
		"ftp://h":        "ftp://h",
		"://":            "://",
	} {
		require.Equal(t, want, printable.Line(in))
	}
}

func TestSEC8_WriterKeepsLinesAndJSON(t *testing.T) {
	const hostile = "a\x1b\n\u202e\u009b\x7f\U000e0001 ü https://u:p@h"
	var b bytes.Buffer
	w := printable.Writer{W: &b}
	n, err := w.Write([]byte("one\ntwo\x1b[2J\n"))
	require.NoError(t, err)
	require.Equal(t, len("one\ntwo\x1b[2J\n"), n)
	require.Equal(t, "one\ntwo\\x1b[2J\n", b.String())

	b.Reset()
	require.NoError(t, json.NewEncoder(w).Encode(hostile))
	var back string
	require.NoError(t, json.Unmarshal(b.Bytes(), &back), b.String())
	require.Equal(t, hostile, back, "a program reads the original")
	require.True(t, shown(strings.TrimSuffix(b.String(), "\n")))
}

func shown(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func FuzzLine(f *testing.F) {
	for _, seed := range []string{"", "a", "\x1b[0m", "https://u:p@h", "\xff\n", "\u202e", "://@://@"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line := printable.Line(s)
		require.True(t, shown(line), "%q", line)
		require.Equal(t, line, printable.Line(line))
	})
}

func TestTheLastElementOfAKeyTellsASecret(t *testing.T) {
	for key, want := range map[string]string{
		"net.ipv4.tcp_fastopen_key": printable.Mask, "a.b/Private.Key": "v", "PRIVATE_KEY": printable.Mask, "id_rsa": printable.Mask, "pwd": printable.Mask,
		"token-file": "v", "net.token.x": "v", "monkey": "v", "cgroup-root-key": "v",
	} {
		require.Equal(t, want, printable.Masked(key, "v"), key)
	}
}
