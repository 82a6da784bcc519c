// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// How many lines are shown of one failure, and of all those of a virtual machine.
const (
	linesOfOne = 60
	linesOfAll = 200
)

// kernelSays begins each line of the kernel's own that guest adds to what failed.
const kernelSays = "kernel: "

var (
	testNow  = regexp.MustCompile(`^=== (?:RUN|CONT|NAME|PAUSE)\s+(\S+)`)
	testEnds = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+)`)
	crash    = regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z]+: |runtime: )`)
)

// why tells whoever has no log why a virtual machine failed: with what failed tests
// printed, panics and what the kernel said; where there is none of that, with the end
// of what the virtual machine printed. Scripts that failed are whole in text.
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

// failures are what a package's tests printed of why they failed: panics, which say it
// first-hand, then each failed test, then the kernel. If there is none of these, they
// are the end of what was printed.
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

// firstLines are the first so many lines, and how many more there are.
func firstLines(text string, most int) string {
	lines := slices.Collect(strings.Lines(text))
	if len(lines) <= most {
		return text
	}
	return strings.Join(lines[:most], "") + fmt.Sprintf("... %d more lines\n", len(lines)-most)
}

// lastLines are the last so many lines, after how many there were before.
func lastLines(text string, most int) string {
	lines := slices.Collect(strings.Lines(text))
	if len(lines) <= most {
		return text
	}
	return fmt.Sprintf("... %d lines before\n", len(lines)-most) + strings.Join(lines[len(lines)-most:], "")
}
