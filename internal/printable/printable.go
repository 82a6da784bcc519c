// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package printable makes text safe to show to a person: names of links and
// files, values, and the messages of servers are chosen by others, who may put
// commands for a terminal, characters that turn the line around, or a line of
// their own into them.
package printable

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns s with everything escaped that is no visible character of one
// line, and without credentials in URLs.
func Line(s string) string { return escape(NoCredentials(s), "") }

// escape escapes all that is not printable nor kept. Above ASCII the escapes
// are those of JSON, so that a JSON document stays one.
func escape(s, kept string) string {
	if safe(s, kept) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r) || strings.ContainsRune(kept, r):
			b.WriteRune(r)
		default:
			b.WriteString(escaped(r))
		}
		i += size
	}
	return b.String()
}

func safe(s, kept string) bool {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return false
			}
		}
		if !unicode.IsPrint(r) && !strings.ContainsRune(kept, r) {
			return false
		}
	}
	return true
}

func escaped(r rune) string {
	switch r {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	if r < ' ' {
		return fmt.Sprintf(`\x%02x`, r)
	}
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// NoCredentials returns s without what stands between :// and @ in a URL.
func NoCredentials(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "://")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("://")
		authority := rest
		if end := strings.IndexAny(rest, "/?#\"'`<> \t\r\n"); end >= 0 {
			authority = rest[:end]
		}
		s = rest[strings.LastIndexByte(authority, '@')+1:]
	}
}

// Writer writes to W what it is given, with everything escaped but the ends of
// lines: those are the caller's, who takes them out of what others chose. No
// character may be spread over two calls.
type Writer struct{ W io.Writer }

// Write writes p and returns its length, whatever the escapes add.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.W, escape(string(p), "\n")); err != nil {
		return 0, err
	}
	return len(p), nil
}
