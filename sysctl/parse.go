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
)

// longestLine is systemd's limit, in bytes.
const longestLine = 1 << 20

// Parse reads a sysctl.d file (sysctl.d(5)). It always returns the settings of the
// valid lines. The error joins one error for each invalid line, with the line's
// number.
func Parse(r io.Reader) ([]Setting, error) {
	as, err := parse(r, "")
	var settings []Setting
	for _, a := range as {
		settings = append(settings, a.Setting)
	}
	return settings, err
}

func parse(r io.Reader, file string) ([]Assignment, error) {
	var as []Assignment
	var errs failures
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	n := 0
	for lines.Scan() {
		n++
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		s, err := parseLine(line)
		if err != nil {
			errs.add(fmt.Errorf("line %d: %w", n, err))
			continue
		}
		as = append(as, Assignment{Setting: s, File: file, Line: n})
	}
	if err := lines.Err(); err != nil {
		errs.add(fmt.Errorf("line %d: %w", n+1, err))
	}
	return as, errs.join()
}

func parseLine(line string) (s Setting, err error) {
	key, value, assigned := strings.Cut(line, "=")
	key, dash := strings.CutPrefix(key, "-")
	s.Value, s.IgnoreFailure, s.Exclude = strings.TrimSpace(value), dash && assigned, !assigned
	if !assigned && !dash {
		return s, fmt.Errorf("%q is neither KEY = VALUE nor -KEY", line)
	}
	if strings.ContainsRune(s.Value, 0) {
		return s, fmt.Errorf("value %q holds NUL", s.Value)
	}
	s.Key, err = ParseKey(strings.TrimSpace(key))
	return s, err
}

// encode writes settings as a sysctl.d file, such that Parse returns the same
// settings.
func encode(settings []Setting) ([]byte, error) {
	var errs []error
	var b bytes.Buffer
	b.WriteString("# Written by slipway, which puts changes back.\n")
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
