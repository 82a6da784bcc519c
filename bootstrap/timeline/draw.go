// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package timeline

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/internal/printable"
)

// The picture's measures, in pixels.
const (
	width      = 960
	labels     = 180 // to the left of the bars
	values     = 170 // to the right of them
	rowHeight  = 26
	barHeight  = 14
	headHeight = 64
	axisHeight = 30
	bars       = width - labels - values
	longest    = 26 // letters of a label
)

// style colours the bars by status, in light and dark surroundings. The status also
// stands beside each bar: nothing is told by its colour alone.
const style = `
svg.slipway { font: 13px system-ui, sans-serif; --text: #1f2328; --faint: #656d76; --line: #d8dee4; --ground: #ffffff;
  --unchanged: #8c959f; --changed: #1a7f37; --would-change: #bf8700; --failed: #cf222e; --unknown: #8250df; --other: #0969da }
@media (prefers-color-scheme: dark) { svg.slipway { --text: #e6edf3; --faint: #8d96a0; --line: #30363d; --ground: #0d1117;
  --unchanged: #6e7681; --changed: #3fb950; --would-change: #d29922; --failed: #f85149; --unknown: #a371f7; --other: #4493f8 } }
.slipway .ground { fill: var(--ground) } .slipway text { fill: var(--text) } .slipway .faint { fill: var(--faint); font-size: 11px }
.slipway .title { font-size: 16px; font-weight: 600 } .slipway line { stroke: var(--line) }
.slipway .bar { rx: 3px } .slipway .run { opacity: .45 } .slipway .wait { fill: url(#slipway-wait) }
.slipway .unchanged { fill: var(--unchanged) } .slipway .changed { fill: var(--changed) } .slipway .would-change { fill: var(--would-change) }
.slipway .failed { fill: var(--failed) } .slipway .unknown { fill: var(--unknown) } .slipway .other { fill: var(--other) }
`

// WriteSVG draws what was noted so far, as one image. What others chose, such as the
// names of links in an error, is escaped.
func (r *Recorder) WriteSVG(w io.Writer) error {
	return r.write(w, (*picture).svg)
}

// WriteHTML writes a page with the image, and below it what each step has to say.
func (r *Recorder) WriteHTML(w io.Writer) error {
	return r.write(w, (*picture).page)
}

func (r *Recorder) write(w io.Writer, draw func(*picture)) error {
	r.mu.Lock()
	p := r.picture()
	r.mu.Unlock()
	draw(p)
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("write the timeline: %w", err)
	}
	return nil
}

// picture is what was noted, with times relative to the first.
type picture struct {
	bytes.Buffer
	title string
	start time.Time
	total time.Duration
	rows  []row
}

func (r *Recorder) picture() *picture {
	p := &picture{}
	now := time.Now()
	var runs []string
	for _, noted := range r.rows {
		if noted.run {
			runs = append(runs, noted.name)
		}
		shown := *noted
		if shown.status == "" {
			shown.status, shown.end = "not ended", now
		}
		shown.waits = nil
		for _, w := range noted.waits {
			ended := *w
			if ended.end.IsZero() {
				ended.end = now
			}
			shown.waits = append(shown.waits, &ended)
		}
		p.rows = append(p.rows, shown)
		if !shown.begin.IsZero() && (p.start.IsZero() || shown.begin.Before(p.start)) {
			p.start = shown.begin
		}
	}
	p.title = cmp.Or(r.Title, strings.Join(runs, ", "), "nothing ran")
	for _, shown := range p.rows {
		if !shown.begin.IsZero() {
			p.total = max(p.total, shown.end.Sub(p.start))
		}
	}
	return p
}

// print writes a line; texts are escaped.
func (p *picture) print(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = html.EscapeString(printable.Line(text))
		}
	}
	fmt.Fprintf(p, format+"\n", args...)
}

func (p *picture) svg() {
	height := headHeight + len(p.rows)*rowHeight + axisHeight
	p.print(`<svg xmlns="http://www.w3.org/2000/svg" class="slipway" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`,
		width, height, width, height, p.title)
	p.WriteString("<style>" + style + "</style>\n")
	p.WriteString(`<defs><pattern id="slipway-wait" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="3" height="6" class="ground" opacity=".6"/></pattern></defs>` + "\n")
	p.print(`<rect class="ground" width="%d" height="%d"/>`, width, height)
	p.print(`<text class="title" x="16" y="28">%s</text>`, p.title)
	if !p.start.IsZero() {
		p.print(`<text class="faint" x="16" y="46">%s, %s</text>`, p.start.UTC().Format(time.RFC3339), milliseconds(p.total))
	}
	p.axis(height)
	for i, shown := range p.rows {
		p.row(headHeight+i*rowHeight, shown)
	}
	p.WriteString("</svg>\n")
}

// axis draws lines at round times.
func (p *picture) axis(height int) {
	every := step(p.total)
	for at := time.Duration(0); at <= p.total && every > 0; at += every {
		x := p.x(at)
		p.print(`<line x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, x, x, headHeight-4, height-axisHeight+4)
		p.print(`<text class="faint" x="%.1f" y="%d" text-anchor="middle">%s</text>`, x, height-axisHeight+18, tick(at, every))
	}
}

func (p *picture) row(y int, shown row) {
	name := shown.name
	if utf8.RuneCountInString(name) > longest {
		name = string([]rune(name)[:longest-1]) + "…"
	}
	p.print(`<g><title>%s</title>`, strings.Join(append([]string{shown.name + ": " + shown.status}, shown.details...), " · "))
	p.print(`<text x="16" y="%d">%s</text>`, y+17, name)
	if shown.begin.IsZero() {
		p.print(`<text class="faint" x="%d" y="%d">%s</text></g>`, labels+bars+12, y+17, shown.status)
		return
	}
	bar := func(class string, begin, end time.Time) {
		p.print(`<rect class="bar %s" x="%.1f" y="%d" width="%.1f" height="%d"/>`,
			class, p.x(begin.Sub(p.start)), y+6, max(2, p.x(end.Sub(p.start))-p.x(begin.Sub(p.start))), barHeight)
	}
	bar(shown.class(), shown.begin, shown.end)
	for _, w := range shown.waits {
		p.print(`<g><title>waiting for %s: %s</title>`, w.what, milliseconds(w.end.Sub(w.begin)))
		bar("wait", w.begin, w.end)
		p.print(`</g>`)
	}
	p.print(`<text class="faint" x="%d" y="%d">%s, %s</text></g>`, labels+bars+12, y+17, milliseconds(shown.end.Sub(shown.begin)), shown.status)
}

// x is where a time since the first is drawn.
func (p *picture) x(at time.Duration) float64 {
	return labels + bars*float64(at)/float64(max(1, p.total))
}

func (p *picture) page() {
	p.print("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>%s</title>", p.title)
	p.WriteString(`<style>
:root { color-scheme: light dark } body { margin: 2em auto; max-width: 960px; font: 14px system-ui, sans-serif }
svg { max-width: 100%; height: auto } table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .3em 1em .3em 0 }
td { border-top: 1px solid #8884 } td p { margin: 0 0 .2em; overflow-wrap: anywhere }
</style>
`)
	p.svg()
	p.print("<table>\n<tr><th>step<th>status<th>began<th>took<th>details")
	for _, shown := range p.rows {
		began, took := "", ""
		if !shown.begin.IsZero() {
			began, took = "+"+milliseconds(shown.begin.Sub(p.start)), milliseconds(shown.end.Sub(shown.begin))
		}
		p.print("<tr><td>%s<td>%s<td>%s<td>%s<td>", shown.name, shown.status, began, took)
		for _, w := range shown.waits {
			p.print("<p>waited %s for %s", milliseconds(w.end.Sub(w.begin)), w.what)
		}
		for _, d := range shown.details {
			p.print("<p>%s", d)
		}
	}
	p.print("</table>\n</html>")
}

// class is how the bar is styled.
func (r row) class() string {
	switch status := bootstrap.Status(r.status); {
	case !slices.Contains([]bootstrap.Status{bootstrap.Unchanged, bootstrap.Changed, bootstrap.WouldChange, bootstrap.Failed, bootstrap.Unknown}, status):
		return "other"
	case r.run:
		return r.status + " run"
	}
	return r.status
}

// step returns a round time of which there are four to ten in total.
func step(total time.Duration) time.Duration {
	for unit := time.Microsecond; ; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if n*unit*10 >= total {
				return n * unit
			}
		}
	}
}

func tick(at, every time.Duration) string {
	switch {
	case every >= time.Second:
		return fmt.Sprintf("%d s", at/time.Second)
	case every >= time.Millisecond:
		return fmt.Sprintf("%d ms", at/time.Millisecond)
	}
	return fmt.Sprintf("%d µs", at/time.Microsecond)
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
