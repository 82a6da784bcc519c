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
	start, said     time.Time
	idleSince       time.Time // since no package's tests run; zero if some do
	idle            time.Duration
	running         map[string]*suite
	done            []*suite
	passed, skipped int
	failed          []string
	why             map[string]int // skipped tests by reason
	broken          bool
}

// suite is one package's tests.
type suite struct {
	name                    string
	start                   time.Time
	elapsed                 time.Duration
	passed, failed, skipped int
	open                    map[string]time.Time // running tests
	output                  map[string][]string  // of tests that have not passed; the empty name is the package's own output
}

func newDigest(out io.Writer, now time.Time) *digest {
	return &digest{out: out, start: now, said: now, idleSince: now, running: map[string]*suite{}, why: map[string]int{}}
}

func (d *digest) say(line string, now time.Time) {
	fmt.Fprintln(d.out, line)
	d.said = now
}

// event processes one event of go test.
func (d *digest) event(e event, now time.Time) {
	if e.Package == "" {
		if text := strings.TrimSuffix(e.Output, "\n"); text != "" {
			d.say(text, now)
		}
		return
	}
	s := d.running[e.Package]
	if s == nil {
		if len(d.running) == 0 {
			d.idle += now.Sub(d.idleSince)
		}
		s = &suite{name: short(e.Package), start: now, open: map[string]time.Time{}, output: map[string][]string{}}
		d.running[e.Package] = s
	}
	switch e.Action {
	case "run", "cont":
		s.open[e.Test] = now
	case "pause": // until the parallel tests reach this point
		delete(s.open, e.Test)
	case "output", "build-output":
		s.output[e.Test] = append(s.output[e.Test], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			d.ended(e, s, now)
		} else {
			d.tested(e, s, now)
		}
	}
}

// tested counts one test.
func (d *digest) tested(e event, s *suite, now time.Time) {
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
		d.show(s, e.Test, now)
	}
	delete(s.output, e.Test)
}

// ended is called when a package's tests have ended.
func (d *digest) ended(e event, s *suite, now time.Time) {
	delete(d.running, e.Package)
	if len(d.running) == 0 {
		d.idleSince = now
	}
	s.elapsed = time.Duration(e.Elapsed * float64(time.Second))
	d.passed, d.skipped = d.passed+s.passed, d.skipped+s.skipped
	d.done = append(d.done, s)
	switch {
	case e.Action == "fail":
		if s.failed == 0 || len(s.open) > 0 { // the build failed, or the process ended
			d.failed = append(d.failed, s.name)
			for _, test := range slices.Sorted(maps.Keys(s.output)) {
				d.show(s, test, now)
			}
		} else if said := strings.Join(s.output[""], ""); closing.ReplaceAllString(said, "") != "" {
			d.show(s, "", now) // such as a panic or a data race while no test ran
		}
		d.say(fmt.Sprintf("FAIL %-36s %6.1f s  %s", s.name, s.elapsed.Seconds(), s.counts()), now)
	case s.passed+s.skipped > 0:
		d.say(fmt.Sprintf("ok   %-36s %6.1f s  %s", s.name, s.elapsed.Seconds(), s.counts()), now)
	}
}

// closing matches the lines with which go test ends the output of a failed package.
var closing = regexp.MustCompile(`(?m)^(FAIL|PASS|exit status \d+|FAIL\t.*|coverage: .*)\n`)

func (s *suite) counts() string {
	text := fmt.Sprintf("%d passed", s.passed)
	if s.failed > 0 {
		text += fmt.Sprintf(", %d failed", s.failed)
	}
	if s.skipped > 0 {
		text += fmt.Sprintf(", %d skipped", s.skipped)
	}
	return text
}

// show prints a test's output.
func (d *digest) show(s *suite, test string, now time.Time) {
	d.say("--- "+s.name+" "+test, now)
	d.say(strings.TrimSuffix(strings.Join(s.output[test], ""), "\n"), now)
	delete(s.output, test)
}

// tick reports the current activity if nothing was printed for a while.
func (d *digest) tick(now time.Time) {
	if now.Sub(d.said) < silence {
		return
	}
	var going []string
	for _, s := range d.running {
		test, since := "", now
		for name, start := range s.open {
			if start.Before(since) || start.Equal(since) && name > test {
				test, since = name, start // if a test and its subtests began together, the subtest
			}
		}
		if test == "" {
			test = "between tests"
		}
		going = append(going, fmt.Sprintf("%s, %.0f s: %s", s.name, now.Sub(s.start).Seconds(), test))
	}
	slices.Sort(going)
	if len(going) == 0 {
		going = []string{"compiling"}
	}
	d.say(fmt.Sprintf("     ... %.0f s: %s", now.Sub(d.start).Seconds(), strings.Join(going, "; ")), now)
}

func (d *digest) failures() int { return len(d.failed) }

// end prints the result and reports whether it is a success.
func (d *digest) end(now time.Time) bool {
	if len(d.running) == 0 {
		d.idle += now.Sub(d.idleSince)
	}
	well := !d.broken && len(d.failed) == 0 && d.passed > 0
	fmt.Fprintln(d.out)
	for _, name := range d.failed {
		fmt.Fprintln(d.out, "failed:", name)
	}
	slices.SortFunc(d.done, func(a, b *suite) int { return cmp.Compare(b.elapsed, a.elapsed) })
	where := []string{fmt.Sprintf("%.0f s compiling", d.idle.Seconds())}
	for _, s := range d.done[:min(3, len(d.done))] {
		where = append(where, fmt.Sprintf("%s %.0f s", s.name, s.elapsed.Seconds()))
	}
	fmt.Fprintf(d.out, "%s: %d tests passed, %d failed, %s, in %.0f s: %s\n",
		map[bool]string{true: "PASS", false: "FAIL"}[well], d.passed, len(d.failed), d.skips(), now.Sub(d.start).Seconds(), strings.Join(where, ", "))
	return well
}

// skips returns the number of skipped tests, and the reasons.
func (d *digest) skips() string {
	if d.skipped == 0 {
		return "0 skipped"
	}
	reasons := slices.SortedFunc(maps.Keys(d.why), func(a, b string) int { return cmp.Or(cmp.Compare(d.why[b], d.why[a]), cmp.Compare(a, b)) })
	for i, r := range reasons {
		reasons[i] = fmt.Sprintf("%d: %s", d.why[r], r)
	}
	return fmt.Sprintf("%d skipped (%s)", d.skipped, strings.Join(reasons, "; "))
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
