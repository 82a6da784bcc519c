// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
)

// width is the width of text in columns: that of a terminal by default.
const width = 80

// The numbers of nodes that a group names, and of versions that are printed.
const (
	named    = 3
	versions = 10
)

// maxText is the most that is printed of a text from a node, in characters.
const maxText = 500

func bounded(text string) string {
	if all := []rune(text); len(all) > maxText {
		return string(all[:maxText-3]) + "..."
	}
	return text
}

// shown is a text from a node as one line that is safe to print.
func shown(text string) string { return bounded(bootstrap.OneLine(text)) }

func (f *fleet) text(now time.Time) string {
	var b strings.Builder
	b.WriteString(wrapped(counted(f.Nodes, "node")+": "+f.results(), ""))
	if len(f.Versions) > 1 {
		b.WriteString(wrapped("versions: "+f.versions(), ""))
	}
	for _, g := range f.Groups {
		b.WriteString("\n" + g.text(now))
	}
	return b.String()
}

// results are the numbers of nodes, the well ones first.
func (f *fleet) results() string {
	var all []string
	for _, r := range []string{"ready", "failed", notReady, outdated, "drifted", "garbled", silent} {
		if n := f.Results[r]; n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, r))
		}
	}
	return cmp.Or(strings.Join(all, ", "), "none is selected")
}

// versions returns the versions, the most frequent first.
func (f *fleet) versions() string {
	var names []string
	for v := range f.Versions {
		names = append(names, v)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(f.Versions[b]-f.Versions[a], cmp.Compare(a, b)) })
	some := names[:min(versions, len(names))]
	for i, v := range some {
		some[i] = fmt.Sprintf("%d with %s", f.Versions[v], shown(v))
	}
	return strings.Join(some, "; ") + more(len(names)-versions)
}

func (g *group) text(now time.Time) string {
	title := counted(len(g.Nodes), "node") + ": " + cmp.Or(g.Code, string(g.Result))
	if g.Step != "" {
		title += ", in step " + g.Step
	}
	if g.Agent != "" {
		title += ", agent " + g.Agent
	}
	if !g.Since.IsZero() {
		title += ", since " + age(now.Sub(g.Since))
	}
	const indent = "    "
	text := wrapped(shown(title), "") + wrapped(g.Cause, indent) + wrapped(g.Remedy, indent)
	return text + wrapped(strings.Join(g.Nodes[:min(named, len(g.Nodes))], ", ")+more(len(g.Nodes)-named), indent)
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

func (n *node) text(now time.Time) string {
	var b strings.Builder
	for i, r := range n.Reports {
		if i > 0 {
			b.WriteString("\n")
		}
		since := ""
		if !r.Since.IsZero() {
			since = fmt.Sprintf("%s (%s)", r.Since.Format(time.RFC3339), age(now.Sub(r.Since)))
		}
		for _, line := range [][2]string{
			{"node", n.Name}, {"agent", r.Agent}, {"result", string(r.Result)}, {"step", r.Step}, {"code", r.Code}, {"since", since},
			{"version", r.Version}, {"message", r.Message}, {"cause", r.Cause}, {"remedy", r.Remedy},
		} {
			if line[1] != "" {
				b.WriteString(line[0] + wrapped(shown(line[1]), strings.Repeat(" ", 9))[len(line[0]):])
			}
		}
	}
	return b.String()
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// age formats a time for people.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < time.Hour:
		return counted(int(d/time.Minute), "minute")
	case d < 48*time.Hour:
		return counted(int(d/time.Hour), "hour")
	}
	return counted(int(d/(24*time.Hour)), "day")
}

// wrapped returns text in lines of width columns, each after indent, or "" if text is empty.
func wrapped(text, indent string) string {
	if text == "" {
		return ""
	}
	return bootstrap.Wrap(text, indent, width) + "\n"
}
