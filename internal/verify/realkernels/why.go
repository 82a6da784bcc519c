// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The number of lines shown of one failure, and of all failures of a virtual machine.
const (
	linesOfOne = 60
	linesOfAll = 200
)

// kernelSays begins each kernel line that guest adds to a failure.
const kernelSays = "kernel: "

var (
	testNow  = regexp.MustCompile(`^=== (?:RUN|CONT|NAME|PAUSE)\s+(\S+)`)
	testEnds = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+)`)
	crash    = regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z]+: |runtime: )`)
)

// why explains, without the log, why a virtual machine failed: with the output of failed
// tests, panics and the kernel's warnings or, if there is none of these, the end of the
// output. The output of failed scripts is in text.
func (r result) why(b boot) string {
	if r.good(b) {
		return ""
	}
	var pieces []string
	for _, name := range r.packages() {
		p := r.parts[name]
		if p.status == "0" {
			continue
		}
		for _, piece := range p.failures() {
			pieces = append(pieces, "--- of "+name+"\n"+piece)
		}
	}
	told := func(name string) bool {
		return name != tests && r.parts[name].status != "0" && r.parts[name].output != ""
	}
	if len(pieces) == 0 && !slices.ContainsFunc(b.parts, told) {
		pieces = []string{"--- the end of what it printed\n" + lastLines(r.log, linesOfOne)}
	}
	return firstLines(strings.Join(pieces, ""), linesOfAll)
}

// failures returns the output that explains why a package's tests failed: panics first,
// which are the most direct, then each failed test, then the kernel. If there is none of
// these, it is the end of the output.
func (p part) failures() (pieces []string) {
	of, failed, now := map[string]string{}, []string(nil), ""
	const crashed, kernel = "a crash", "the kernel"
	for line := range strings.Lines(p.output) {
		at := now
		if m := testNow.FindStringSubmatch(line); m != nil {
			now, at = m[1], m[1]
		} else if m := testEnds.FindStringSubmatch(line); m != nil {
			at = m[2]
			if m[1] == "FAIL" {
				failed = append(failed, at)
			}
		} else if crash.MatchString(line) {
			now, at = crashed, crashed
		} else if strings.HasPrefix(line, kernelSays) {
			at = kernel
		}
		of[at] += line
	}
	if of[crashed] != "" {
		pieces = append(pieces, firstLines(of[crashed], linesOfOne))
	}
	for _, name := range append(failed, kernel) {
		if of[name] != "" {
			pieces = append(pieces, lastLines(of[name], linesOfOne))
			of[name] = "" // a test may be named twice
		}
	}
	if of[crashed] == "" && failed == nil {
		pieces = append(pieces, lastLines(p.output, linesOfOne))
	}
	return pieces
}

// firstLines returns the first lines, and the number of further ones.
func firstLines(text string, most int) string {
	lines := slices.Collect(strings.Lines(text))
	if len(lines) <= most {
		return text
	}
	return strings.Join(lines[:most], "") + fmt.Sprintf("... %d more lines\n", len(lines)-most)
}

// lastLines returns the last lines, after the number of earlier ones.
func lastLines(text string, most int) string {
	lines := slices.Collect(strings.Lines(text))
	if len(lines) <= most {
		return text
	}
	return fmt.Sprintf("... %d lines before\n", len(lines)-most) + strings.Join(lines[len(lines)-most:], "")
}
