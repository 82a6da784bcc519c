// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package textdiff shows people how contents would change: with secrets masked, and whatever
// a terminal would obey escaped. The comparison itself is the caller's.
package textdiff

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/slipway-dev/slipway/internal/printable"
)

// How many bytes of a content are compared, and how many the differences of one look have.
const (
	MaxText = 64 << 10
	maxAll  = 1 << 20
)

// Compare returns the difference of two texts in the unified format, below the two names.
type Compare = func(nameBefore, nameAfter, before, after string) string

// Collector passes on the differences that a look finds.
type Collector struct {
	compare Compare
	add     func(object, difference string)
	size    int
}

type key struct{}

// With returns a context in which add is called with each difference, if there is something to
// compare with, and in which there is none else.
func With(ctx context.Context, compare Compare, add func(object, difference string)) context.Context {
	if compare == nil {
		return context.WithValue(ctx, key{}, nil)
	}
	return context.WithValue(ctx, key{}, &Collector{compare: compare, add: add})
}

// From returns the context's Collector, or nil.
func From(ctx context.Context) *Collector {
	c, _ := ctx.Value(key{}).(*Collector)
	return c
}

// Side is a file before or after a change. The zero Side: there is none.
type Side struct {
	Name   string
	About  string // such as its mode
	Text   string // or its first MaxText+1 bytes
	Size   int64
	Sum    string // of the content, if it is known
	Hidden string // why the text is not shown
}

// Add adds what tells two sides of an object apart. As in git's format, lines above the names
// say what changes besides the content.
func (c *Collector) Add(object string, before, after Side) {
	if before == after || c.size > maxAll {
		return
	}
	text := ""
	if before.About != after.About {
		text = before.about("old ") + after.about("new ")
	}
	body := fmt.Sprintf("--- %s\n+++ %s\n", before.label(), after.label())
	switch hidden := cmp.Or(before.hides(), after.hides()); {
	case before.Sum != "" && before.Sum == after.Sum:
	case hidden != "":
		body += "The content is not shown: " + hidden + "\n"
	case strings.Contains(before.Text+after.Text, "\x00"):
		body += fmt.Sprintf("Binary files differ: %d bytes, %d bytes\n", before.Size, after.Size)
	case max(len(before.Text), len(after.Text)) > MaxText:
		body += fmt.Sprintf("Files differ: %d bytes, %d bytes, which is too much to be shown\n", before.Size, after.Size)
	default:
		body = cmp.Or(c.compare(before.label(), after.label(), before.Text, after.Text), body)
		if !strings.HasSuffix(before.Text, "\n") && !strings.HasSuffix(after.Text, "\n") {
			body = strings.ReplaceAll(body, "\n\\ No newline at end of file\n", "\n") // it is said where it changes
		}
	}
	for line := range strings.Lines(body) {
		shown, _ := masked(strings.TrimSuffix(line, "\n"))
		text += printable.Line(shown) + "\n"
	}
	if c.size += len(text); c.size > maxAll {
		text += "Further differences are not shown: there are too many\n"
	}
	c.add(object, text)
}

func (s Side) label() string { return cmp.Or(printable.Line(s.Name), "/dev/null") }

func (s Side) about(when string) string {
	if s.About == "" {
		return ""
	}
	return when + printable.Line(s.About) + "\n"
}
