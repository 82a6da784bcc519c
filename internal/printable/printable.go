// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package printable makes text safe to show to a person: others choose the names of links
// and files, values, and the messages of servers, and may put terminal commands,
// characters that reverse the line, or forged lines into them.
package printable

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns s with everything escaped that is not a visible character of one line, and
// without credentials in URLs.
func Line(s string) string { return escape(NoCredentials(s), "") }

// escape escapes all that is neither printable nor kept. Above ASCII the escapes are
// those of JSON, so that a JSON document stays one.
func escape(s, kept string) string {
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

// NoCredentials returns s without the part between :// and @ of URLs.
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

// Writer writes to W with everything escaped but line breaks: those are the caller's, who
// must remove them from text of others. No character may be split over two calls.
type Writer struct{ W io.Writer }

// Write writes p and returns its length, whatever the escapes add.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.W, escape(string(p), "\n")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Mask replaces a value that is not shown.
const Mask = "(masked)"

// secretWords are the words in a key that mark its value as a secret. They may be
// part of a longer word; dots, dashes and underscores are the same.
func secretWords() []string {
	return []string{
		"password", "passwd", "passphrase", "secret", "token", "credential",
		"private-key", "privatekey", "api-key", "apikey", "access-key", "accesskey",
		"encryption-key", "encryptionkey", "auth-key", "authkey", "fastopen-key", "tls-key", "client-key", "server-key", "ca-key",
		"psk", "pre-shared-key", "preshared-key", "presharedkey", "kubeconfig", "dockerconfig", "key-data", "cookie",
	}
}

// secretNames are whole keys whose values are secrets, such as those of a Secret.
func secretNames() []string {
	return []string{"keys", "ipsec-keys", "pwd", "id-rsa", "id-ecdsa", "id-ed25519"}
}

// placeWords are the endings of keys whose value is only the location of a secret.
func placeWords() []string { return []string{"-namespace", "-file", "-path", "-dir"} }

// Secret reports whether, judging by its name, the value of key is a secret.
func Secret(key string) bool {
	key = strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(key), "_", "-"), ".", "-")
	holds := func(word string) bool { return strings.Contains(key, word) }
	ends := func(word string) bool { return strings.HasSuffix(key, word) }
	return slices.Contains(secretNames(), key) || slices.ContainsFunc(secretWords(), holds) && !slices.ContainsFunc(placeWords(), ends)
}

// Masked returns the kernel's value of key, or Mask if the key's last element looks secret.
func Masked(key, value string) string {
	if Secret(key[strings.LastIndexAny(key, "./")+1:]) {
		return Mask
	}
	return value
}
