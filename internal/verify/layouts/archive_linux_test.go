// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package layouts_test

import (
	"fmt"
	"slices"
	"strings"
)

// layout is one archive.
type layout struct {
	name, title string
	lines       []line
	files       map[string]string
}

// line is one of the archive's file "layout".
type line struct {
	verb   string
	args   []string
	source string
}

// parse reads an archive, in which every line must name a source declared in the comment.
func parse(name, text string) (l layout, err error) {
	comment, files := split(text)
	l = layout{name: name, files: files}
	sources := map[string]bool{}
	for line := range strings.Lines(comment) {
		line = strings.TrimSpace(line)
		switch id, source, found := strings.Cut(line, ": "); {
		case line == "":
		case l.title == "":
			l.title = line
		case !found || strings.Contains(id, " ") || len(strings.Fields(source)) < 3:
			return l, fmt.Errorf("%s: %q is not a source: NAME: REPOSITORY FILE VERSION", name, line)
		default:
			sources[id] = false
		}
	}
	for text := range strings.Lines(files["layout"]) {
		what, source, _ := strings.Cut(strings.TrimSpace(text), " # ")
		words := strings.Fields(what)
		if len(words) == 0 {
			continue
		}
		for id := range strings.FieldsSeq(source) {
			if _, declared := sources[id]; !declared {
				return l, fmt.Errorf("%s: %q: source %q is not declared", name, text, id)
			}
			sources[id] = true
		}
		if source == "" {
			return l, fmt.Errorf("%s: %q has no source", name, text)
		}
		l.lines = append(l.lines, line{words[0], words[1:], source})
	}
	for id, used := range sources {
		if !used {
			return l, fmt.Errorf("%s: nothing is from source %q", name, id)
		}
	}
	delete(files, "layout")
	for path := range files {
		if !slices.ContainsFunc(l.lines, func(n line) bool { return n.verb == "file" && n.args[0] == path }) {
			return l, fmt.Errorf("%s: no line says what %s is", name, path)
		}
	}
	return l, nil
}

// split parses a txtar: a comment, and files, each after a line "-- NAME --".
func split(text string) (comment string, files map[string]string) {
	files = map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if head, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok && strings.HasSuffix(head, " --") {
			name = strings.TrimSuffix(head, " --")
			files[name] = ""
			continue
		}
		if name == "" {
			comment += line
		} else {
			files[name] += line
		}
	}
	return comment, files
}

// all returns the lines with one of the verbs.
func (l layout) all(verbs ...string) (lines []line) {
	for _, n := range l.lines {
		if slices.Contains(verbs, n.verb) {
			lines = append(lines, n)
		}
	}
	return lines
}
