// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// result is the parsed output of a virtual machine.
type result struct {
	kernel  string
	parts   map[string]part
	ended   bool   // it ran to its end
	outside string // output outside of parts
	log     string // the whole output

	minutes, processor float64 // time by the clock, and of the processor
}

// part is one script, or the tests of one package.
type part struct {
	status, output string
	seconds        string
	passed         []string
	failed         []string
	skipped        []string // with the reason
}

var (
	beginMark = regexp.MustCompile(`^@@BEGIN (\S+)$`)
	endMark   = regexp.MustCompile(`^@@END (\S+) (\S+) (\S+)$`)
	testMark  = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+)`)
)

func readResult(log string) (result, error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return result{}, err
	}
	return parse(string(bytes.ReplaceAll(text, []byte("\r"), nil))), nil
}

func parse(text string) result {
	r := result{parts: map[string]part{}, log: text}
	var name string
	var p part
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if version, found := strings.CutPrefix(line, "@@LINUX "); found {
			r.kernel = version
		} else if m := beginMark.FindStringSubmatch(line); m != nil {
			name, p = m[1], part{status: "unfinished"}
			r.parts[name] = p
		} else if m := endMark.FindStringSubmatch(line); m != nil && m[1] == name {
			p.status, p.seconds = m[2], m[3]
			p.count()
			r.parts[name], name = p, ""
		} else if line == "@@ENDED" {
			r.ended = true
		} else if name != "" {
			p.output += line + "\n"
			r.parts[name] = p
		} else {
			r.outside += line + "\n"
		}
	}
	return r
}

// count counts tests; a skip's reason comes before or after the test's result.
func (p *part) count() {
	var last string
	for line := range strings.Lines(p.output) {
		line = strings.TrimRight(line, "\n")
		m := testMark.FindStringSubmatch(line)
		switch {
		case m == nil:
			last = strings.TrimSpace(line)
		case m[1] == "PASS":
			p.passed = append(p.passed, m[2])
		case m[1] == "FAIL":
			p.failed = append(p.failed, m[2])
		default:
			p.skipped = append(p.skipped, m[2]+": "+last)
		}
	}
}

// version is the kernel's: Debian uses one release name for many versions, and the
// version is in the build string.
func (r result) version() string {
	numbers := regexp.MustCompile(`\d+\.\d+\.\d+`).FindAllString(r.kernel, -1)
	if len(numbers) == 0 {
		return ""
	}
	return numbers[len(numbers)-1]
}

// packages returns the names of the packages whose tests ran.
func (r result) packages() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(r.parts)) {
		if strings.HasPrefix(name, tests+"/") {
			names = append(names, name)
		}
	}
	return names
}

// works reports whether a part of a boot succeeded.
func (r result) works(name string) bool {
	if name != tests {
		return r.parts[name].status == "0"
	}
	return r.ended && len(r.packages()) > 0 && !slices.ContainsFunc(r.packages(), func(p string) bool { return r.parts[p].status != "0" })
}

func (r result) good(b boot) bool {
	return r.ended && !slices.ContainsFunc(b.parts, func(name string) bool { return !r.works(name) })
}

// text is the summary: a line for each part and each package, and the output of failed
// scripts. The output of tests is in why.
func (r result) text(b boot) string {
	var s strings.Builder
	for _, name := range append(slices.DeleteFunc(slices.Clone(b.parts), func(p string) bool { return p == tests }), r.packages()...) {
		p := r.parts[name]
		said := map[string]string{"0": "ok", "": "not run"}[p.status]
		if said == "" {
			said = "FAILED (" + p.status + ")"
		}
		fmt.Fprintf(&s, "%-36s %-12s %8s s", name, said, p.seconds)
		if strings.HasPrefix(name, tests+"/") {
			fmt.Fprintf(&s, "  passed %d, failed %d, skipped %d", len(p.passed), len(p.failed), len(p.skipped))
		} else if p.status != "0" {
			s.WriteString("\n" + p.output)
		}
		s.WriteString("\n")
		for _, test := range p.failed {
			s.WriteString("    failed: " + test + "\n")
		}
		for _, test := range p.skipped {
			s.WriteString("    skipped: " + test + "\n")
		}
	}
	if !r.ended {
		s.WriteString(r.outside + "the virtual machine did not come to its end\n")
	}
	fmt.Fprintf(&s, "%.1f minutes, %.1f of processor time\n", r.minutes, r.processor)
	return s.String()
}

// linesOfOne is how many lines are shown of a package whose tests failed.
const linesOfOne = 200

// passing is a line that tells nothing of a failure.
var passing = regexp.MustCompile(`^(=== |\s*--- (PASS|SKIP): )`)

// why is what packages whose tests failed, or the machine if it came to no end, printed last.
func (r result) why(b boot) string {
	if r.good(b) {
		return ""
	}
	text := ""
	for _, name := range r.packages() {
		if p := r.parts[name]; p.status != "0" {
			text += "--- of " + name + "\n" + lastLines(p.output)
		}
	}
	if text == "" {
		text = "--- the end of what it printed\n" + lastLines(r.log)
	}
	return text
}

func lastLines(text string) string {
	lines := slices.DeleteFunc(strings.SplitAfter(text, "\n"), passing.MatchString)
	return strings.Join(lines[max(0, len(lines)-linesOfOne):], "")
}

// cell is a cell of the table; empty if the part was not run.
func (r result) cell(name string) string {
	if name == tests {
		passed, failed, skipped := 0, 0, 0
		for _, p := range r.packages() {
			passed, failed, skipped = passed+len(r.parts[p].passed), failed+len(r.parts[p].failed), skipped+len(r.parts[p].skipped)
		}
		switch {
		case passed == 0:
			return ""
		case !r.works(tests):
			return fmt.Sprintf("%d passed, **%d failed**", passed, failed)
		case skipped > 0:
			return fmt.Sprintf("%d passed, %d skipped", passed, skipped)
		}
		return fmt.Sprintf("%d passed", passed)
	}
	if pkg, test, ok := strings.Cut(name, " "); ok {
		return r.parts[pkg].testCell(test)
	}
	p, run := r.parts[name]
	switch {
	case !run:
		return ""
	case p.status == "0":
		return "yes"
	}
	return "**no**"
}

// testCell is a cell of the table for one test, which is skipped if the kernel lacks its
// feature.
func (p part) testCell(test string) string {
	switch {
	case slices.Contains(p.passed, test):
		return "yes"
	case slices.Contains(p.failed, test):
		return "**no**"
	case slices.ContainsFunc(p.skipped, func(s string) bool { return strings.HasPrefix(s, test+": ") }):
		return "not in this kernel"
	}
	return ""
}

const (
	tableBegin = "<!-- what make kernels has shown -->"
	tableEnd   = "<!-- end -->"
)

// writeTable replaces the table in a file with that of all logs.
func writeTable(file, logs string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return fmt.Errorf("%s: no place for the table, between %s and %s", file, tableBegin, tableEnd)
	}
	t, err := table(logs)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(before+tableBegin+"\n"+t+tableEnd+after), 0o644)
}

// table covers all kernels and all machines: a smaller one would remove the others'
// results.
func table(logs string) (string, error) {
	var head, line strings.Builder
	cells := make([]strings.Builder, len(rows))
	var missing []error
	for _, kernel := range series {
		results := map[string]result{}
		version := ""
		for _, b := range boots {
			r, err := readResult(filepath.Join(logs, kernel+"_"+b.name+".log"))
			if err != nil {
				missing = append(missing, fmt.Errorf("-kernels %s -run %s: %w", kernel, b.name, err))
				continue
			}
			results[b.name], version = r, r.version()
		}
		if isArm(kernel) {
			version += ", arm64"
		}
		head.WriteString(" | " + version)
		line.WriteString("|---")
		for i, row := range rows {
			cells[i].WriteString(" | " + results[row.boot].cell(row.part))
		}
	}
	var t strings.Builder
	t.WriteString("| Linux" + head.String() + " |\n|---" + line.String() + "|\n")
	for i, row := range rows {
		t.WriteString("| " + row.title + cells[i].String() + " |\n")
	}
	return t.String(), errors.Join(missing...)
}
