// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
)

// An error may contain text from a server, which must not control the terminal.
func ExampleOneLine() {
	err := errors.New("GET https://user:secret@api: \x1b[2Jall is well\nreally")
	fmt.Fprintln(bootstrap.Printable(os.Stdout), bootstrap.OneLine(err.Error()))
	// Output: GET https://api: \x1b[2Jall is well; really
}

func TestSEC8_OneLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"plain é":               "plain é",
		" a\nb\n":               "a; b",
		"a\rb\t\u202e\xff":      `a\rb\t\u202e\xff`,
		"http://u:p@h/\nhttp:/": "http://h/; http:/",
	} {
		require.Equal(t, want, bootstrap.OneLine(in))
	}
	long := bootstrap.OneLine("a" + strings.Repeat("é", 10_000))
	require.True(t, utf8.ValidString(long), "no character is cut in two")
	require.Less(t, len(long), 8300)
	require.True(t, strings.HasSuffix(long, "é... (20001 bytes)"), long[8000:])
}

func TestSEC8_Printable(t *testing.T) {
	var b bytes.Buffer
	n, err := bootstrap.Printable(&b).Write([]byte("one\ntwo\x1b[2J\n"))
	require.NoError(t, err)
	require.Equal(t, 12, n, "an io.Writer returns the length of its input")
	require.Equal(t, "one\ntwo\\x1b[2J\n", b.String())
}
