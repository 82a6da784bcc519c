// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

const modulePath = "github.com/slipway-dev/slipway"

// digest is the state of the tests so far.
type digest struct {
	out             io.Writer
	running         map[string]*suite
	passed, skipped int
	failed          []string
	why             map[string]int // skipped tests by reason
	broken          bool
}

// suite is one package's tests.
type suite struct {
	name                    string
	passed, failed, skipped int
	open                    map[string]bool     // running tests
	output                  map[string][]string // of tests that have not passed; the empty name is the package's own output
}

func newDigest(out io.Writer) *digest {
	return &digest{out: out, running: map[string]*suite{}, why: map[string]int{}}
}

// event processes one event of go test.
func (d *digest) event(e event) {
	if e.Package == "" {
		fmt.Fprint(d.out, e.Output)
		return
	}
	s := d.running[e.Package]
	if s == nil {
		s = &suite{name: short(e.Package), open: map[string]bool{}, output: map[string][]string{}}
		d.running[e.Package] = s
	}
	switch e.Action {
	case "run":
		s.open[e.Test] = true
	case "output", "build-output":
		s.output[e.Test] = append(s.output[e.Test], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			d.ended(e, s)
		} else {
			d.tested(e, s)
		}
	}
}

// tested counts one test.
func (d *digest) tested(e event, s *suite) {
	delete(s.open, e.Test)
	switch e.Action {
	case "pass":
		s.passed++
	case "skip":
		s.skipped++
		d.why[reason(s.output[e.Test])]++
	case "fail":
		s.failed++
		d.failed = append(d.failed, s.name+" "+e.Test)
		d.show(s, e.Test)
	}
	delete(s.output, e.Test)
}

// ended is called when a package's tests have ended.
func (d *digest) ended(e event, s *suite) {
	delete(d.running, e.Package)
	d.passed, d.skipped = d.passed+s.passed, d.skipped+s.skipped
	result := "ok  "
	if e.Action == "fail" {
		result = "FAIL"
		if s.failed == 0 || len(s.open) > 0 { // the build failed, or the process ended
			d.failed = append(d.failed, s.name)
			for _, test := range slices.Sorted(maps.Keys(s.output)) {
				d.show(s, test)
			}
		} else if closing.ReplaceAllString(strings.Join(s.output[""], ""), "") != "" {
			d.show(s, "") // such as a panic or a data race while no test ran
		}
	}
	if e.Action == "fail" || s.passed+s.skipped > 0 {
		fmt.Fprintf(d.out, "%s %-36s %6.1f s  %d passed, %d failed, %d skipped\n", result, s.name, e.Elapsed, s.passed, s.failed, s.skipped)
	}
}

// closing matches the lines with which go test ends the output of a failed package.
var closing = regexp.MustCompile(`(?m)^(FAIL|PASS|exit status \d+|FAIL\t.*|coverage: .*)\n`)

// show prints a test's output.
func (d *digest) show(s *suite, test string) {
	fmt.Fprintf(d.out, "--- %s %s\n%s", s.name, test, strings.Join(s.output[test], ""))
	delete(s.output, test)
}

// end prints the result and reports whether it is a success.
func (d *digest) end(took time.Duration) bool {
	well := !d.broken && len(d.failed) == 0 && d.passed > 0
	fmt.Fprintln(d.out)
	for _, name := range d.failed {
		fmt.Fprintln(d.out, "failed:", name)
	}
	result := "FAIL"
	if well {
		result = "PASS"
	}
	fmt.Fprintf(d.out, "%s: %d tests passed, %d failed, %d skipped%s, in %.0f s\n", result, d.passed, len(d.failed), d.skipped, d.reasons(), took.Seconds())
	return well
}

// reasons says why tests were skipped, the most frequent first.
func (d *digest) reasons() string {
	if d.skipped == 0 {
		return ""
	}
	reasons := slices.SortedFunc(maps.Keys(d.why), func(a, b string) int { return cmp.Or(cmp.Compare(d.why[b], d.why[a]), cmp.Compare(a, b)) })
	for i, r := range reasons {
		reasons[i] = fmt.Sprintf("%d: %s", d.why[r], r)
	}
	return " (" + strings.Join(reasons, "; ") + ")"
}

var logged = regexp.MustCompile(`^\s*[\w.-]+\.go:\d+: (.*)$`)

// reason is the last log line of a skipped test.
func reason(output []string) string {
	for _, line := range slices.Backward(output) {
		if m := logged.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			return m[1]
		}
	}
	return "no reason given"
}

// short is a package's path from the repository's root.
func short(pkg string) string {
	return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(pkg, modulePath), "/"), "the root")
}
