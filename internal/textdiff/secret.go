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
	isSecret := printable.Secret(path.Base(s.Name)) && !isPlain(s.Text) || strings.Contains(s.Text, "PRIVATE KEY-----")
	for line := range strings.Lines(s.Text) {
		_, isOpen := masked(line)
		isSecret = isSecret || isOpen
	}
	if s.Hidden == "" && isSecret {
		return "it may be secret"
	}
	return s.Hidden
}

// isPlain reports whether a value reveals nothing.
func isPlain(value string) bool {
	value = strings.Trim(value, " \t\r\n,\"'")
	return value == "" || value == "true" || value == "false"
}

// keyed finds a key of JSON, YAML, or a file of settings, up to its value.
var keyed = regexp.MustCompile(`([\w./-]+)["']?\s*[:=]\s*`)

// masked returns a line up to the value of the first key that looks secret, and reports
// whether that value may go on below.
func masked(line string) (shown string, isOpen bool) {
	for _, at := range keyed.FindAllStringSubmatchIndex(line, -1) {
		value := strings.TrimSpace(line[at[1]:])
		switch {
		case !printable.Secret(line[at[2]:at[3]]):
		case value == "", strings.ContainsRune("|>[{", rune(value[0])), strings.ContainsRune("\"'", rune(value[0])) && strings.Count(value, value[:1]) < 2:
			return "", true
		case !isPlain(value):
			return line[:at[1]] + printable.Mask, false
		}
	}
	return line, false
}
