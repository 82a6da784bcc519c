// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package textdiff

import (
	"path"
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway/internal/printable"
)

// hides returns why a text is not shown; "" if it is.
func (s Side) hides() string {
	isSecret := printable.Secret(path.Base(s.Name)) && !isPlain(s.Text) || privateKey.MatchString(s.Text)
	atSecret := maxIndent
	for line := range strings.Lines(s.Text) {
		indent := len(line) - len(strings.TrimLeft(line, " \t-"))
		shown, isOpen := masked(line)
		isSecret = isSecret || isOpen || indent > atSecret
		switch {
		case shown != line:
			atSecret = indent // what is further in below goes on with the value
		case strings.TrimSpace(line) != "":
			atSecret = maxIndent
		}
	}
	if s.Hidden == "" && isSecret {
		return "it may be secret"
	}
	return s.Hidden
}

const maxIndent = MaxText + 1

// privateKey finds one as PEM, also in base64, where a certificate has a D.
var privateKey = regexp.MustCompile(`PRIVATE KEY-----|LS0tLS1CRUdJTiB[^D]`)

// isPlain reports whether a value reveals nothing.
func isPlain(value string) bool {
	value = strings.Trim(value, " \t\r\n,\"'")
	return value == "" || value == "true" || value == "false"
}

// word finds words and, with what stands before their values, keys of JSON (which may be in a
// string), YAML, or a file of settings.
var word = regexp.MustCompile(`([\w./-]+)(\\*["']?\s*[:=]\s*)?`)

// credential finds keys that are too short for [printable.Secret].
var credential = regexp.MustCompile(`(?i)(authorization|^auth|^pass|^pwd)$`)

// masked returns a line up to the value of the first key that looks secret, and reports
// whether a secret may be elsewhere: below, or where it has no key.
func masked(line string) (shown string, isOpen bool) {
	for _, at := range word.FindAllStringSubmatchIndex(line, -1) {
		name, isKey := line[at[2]:at[3]], at[4] >= 0
		value := strings.TrimSpace(line[at[1]:])
		switch isSecret := printable.Secret(name); {
		case isKey && (isSecret || credential.MatchString(name)):
			if goesOn(value) {
				return "", true
			}
			if !isPlain(value) {
				return line[:at[1]] + printable.Mask, false
			}
		case isSecret && !strings.Contains(name, "/"): // an argument, or the name beside a value, but no path
			isOpen = true
		}
	}
	return line, isOpen
}

// goesOn reports whether the end of a value may be further down.
func goesOn(value string) bool {
	if value == "" || strings.ContainsRune("|>[{&*!#", rune(value[0])) || strings.HasSuffix(value, `\`) {
		return true
	}
	quote := value[:1]
	return strings.Contains("\"'", quote) && (strings.Contains(value, `\`) || strings.Count(value, quote)%2 > 0)
}
