// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/slipway-dev/slipway/internal/failure"
)

// longestLine is systemd's limit, in bytes.
const longestLine = 1 << 20

// Parse reads a sysctl.d file (sysctl.d(5)). It always returns the settings of the
// valid lines. The error joins one error for each invalid line, with the line's
// number.
func Parse(r io.Reader) ([]Setting, error) {
	as, _, err := parse(r, "")
	var settings []Setting
	for _, a := range as {
		settings = append(settings, a.Setting)
	}
	return settings, err
}

// parse also says what there is in the file that systemd may read otherwise, if
// there is such a thing.
func parse(r io.Reader, file string) (as []assignment, odd string, err error) {
	var errs failure.Set
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	n := 0
	for lines.Scan() {
		n++
		line := trim(lines.Text())
		if what := oddity(line); what != "" && odd == "" {
			odd = fmt.Sprintf("%s:%d has %s, which systemd may read otherwise: replace it by a space or a line break", file, n, what)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		s, err := parseLine(line)
		if err != nil {
			errs.Add(fmt.Errorf("line %d: %w", n, err))
			continue
		}
		if hasClass(string(s.Key)) && odd == "" {
			odd = fmt.Sprintf("%s:%d has a character class, which is not understood here", file, n)
		}
		as = append(as, assignment{Setting: s, File: file, Line: n})
	}
	if err := lines.Err(); err != nil {
		errs.Add(fmt.Errorf("line %d: %w", n+1, err))
	}
	return as, odd, errs.Join()
}

// trim cuts off what systemd takes for white space.
func trim(s string) string { return strings.Trim(s, " \t\n\r") }

// oddity names what looks like a line break or white space, and is none to everybody.
func oddity(line string) string {
	switch i := strings.IndexFunc(line, func(r rune) bool { return r == 0 || unicode.IsSpace(r) && r != ' ' && r != '\t' }); {
	case i < 0:
		return ""
	case line[i] == '\r':
		return "a carriage return within a line"
	case line[i] == 0:
		return "a NUL"
	default:
		return "an unusual white space"
	}
}

func parseLine(line string) (s Setting, err error) {
	key, value, assigned := strings.Cut(line, "=")
	key, dash := strings.CutPrefix(key, "-")
	s.Value, s.IgnoreFailure, s.Exclude = trim(value), dash && assigned, !assigned
	if !assigned && !dash {
		return s, fmt.Errorf("%q is neither KEY = VALUE nor -KEY", line)
	}
	if strings.ContainsRune(s.Value, 0) {
		return s, fmt.Errorf("value %q holds NUL", s.Value)
	}
	s.Key, err = fileKey(trim(key))
	return s, err
}

// encode writes settings as a sysctl.d file below a line of comment, such that Parse
// returns the same settings.
func encode(header string, settings []Setting) ([]byte, error) {
	var errs []error
	var b bytes.Buffer
	b.WriteString(header + "\n")
	for _, s := range settings {
		key, err := ParseKey(string(s.Key))
		s.Key, s.Value, s.IfExists = key, strings.TrimSpace(s.Value), false
		if err != nil {
			errs = append(errs, err)
			continue
		}
		back, err := parseLine(s.String())
		if s.Exclude {
			back.Value, back.IgnoreFailure = s.Value, s.IgnoreFailure
		}
		if strings.ContainsAny(s.String(), "\n\r\x00") || strings.ContainsAny(s.String()[:1], "#;") || err != nil || back != s {
			errs = append(errs, fmt.Errorf("%q cannot stand in a sysctl.d file", s.String()))
			continue
		}
		fmt.Fprintln(&b, s)
	}
	return b.Bytes(), errors.Join(errs...)
}
