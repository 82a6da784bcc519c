// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
)

// progress shows a plan as it runs. On a terminal, an eye finds by color what has changed or
// failed.
func (a *app) progress() *bootstrap.Trace {
	unwanted, _ := a.getenv("NO_COLOR")
	if term, _ := a.getenv("TERM"); a.width == 0 || unwanted != "" || term == "dumb" {
		return bootstrap.TextTrace(a.stdout, a.width, nil)
	}
	return bootstrap.TextTrace(a.shell, a.width, painted) // which escapes all but these colors
}

func painted(s bootstrap.Status, text string) string {
	color := map[bootstrap.Status]string{
		bootstrap.Changed: "32", bootstrap.WouldChange: "33", bootstrap.Unknown: "33", bootstrap.Failed: "31", bootstrap.Blocked: "31", bootstrap.NotRun: "31",
	}[s]
	if color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// lastSaid is what a check has said, part by part and without its times.
type lastSaid map[string]bool

// aTime is what two equal texts differ in: a time, or a duration.
var aTime = regexp.MustCompile(`(time=|"time":)\S+|"(start|elapsedMs)": \S+| +[0-9.]+(m[0-9.]+)?(s|ms|µs)\b|\([0-9.]+\S*s\)`)

// news returns the parts of the next text that the last one did not have: the lines, each with
// those that are indented below it, or all of it if it is one whole, as a JSON document.
func (l *lastSaid) news(text string, whole bool) (news string) {
	var parts []string
	for line := range strings.Lines(text) {
		if i := len(parts) - 1; i >= 0 && (strings.HasPrefix(line, "    ") || whole) {
			parts[i] += line
		} else {
			parts = append(parts, line)
		}
	}
	said := lastSaid{}
	for _, part := range parts {
		key := aTime.ReplaceAllString(part, "")
		if said[key] = true; !(*l)[key] {
			news += part
		}
	}
	*l = said
	return news
}
