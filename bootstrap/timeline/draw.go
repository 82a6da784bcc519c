// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package timeline

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/printable"
)

// Measures of the image, in pixels.
const (
	width, labels, values             = 960, 190, 170 // bars stand between the labels and the values
	rowHeight, headHeight, axisHeight = 26, 64, 30
	bars                              = width - labels - values
)

// fills are the colors of bars by status. The status also stands beside each bar:
// color is never the only sign.
var fills = map[bootstrap.Status]string{
	bootstrap.Unchanged: "#8c959f", bootstrap.Changed: "#1a7f37", bootstrap.WouldChange: "#bf8700",
	bootstrap.Failed: "#cf222e", bootstrap.Unknown: "#8250df",
}

// WriteFile draws what was recorded so far as one image with plain fills on white, which
// every viewer renders alike. Text is escaped. The file at path, mode 0644, is replaced: a
// reader finds the old image or the new one.
func (r *Recorder) WriteFile(path string) error {
	path, err := filepath.Abs(path)
	if err == nil {
		err = durable.WriteFile(path, 0o644, r.picture(time.Now()).Bytes())
	}
	if err != nil {
		return fmt.Errorf("write the timeline: %w", err)
	}
	return nil
}

// picture is an image, from the first begin to the last end.
type picture struct {
	bytes.Buffer
	start, now time.Time // unfinished rows are drawn up to now
	total      time.Duration
}

// picture draws the recorded rows.
func (r *Recorder) picture(now time.Time) *picture {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &picture{now: now}
	var runs []string
	for _, noted := range r.rows {
		if noted.run {
			runs = append(runs, noted.name)
		}
		if p.start.IsZero() {
			p.start = noted.begin // the first row's, if it was tried
		}
		if !noted.begin.IsZero() {
			p.total = max(p.total, p.end(noted.end).Sub(p.start))
		}
	}
	p.draw(cmp.Or(strings.Join(runs, ", "), "nothing ran"), r.rows)
	return p
}

// end is when a row ends in the image.
func (p *picture) end(noted time.Time) time.Time { return cmp.Or(noted, p.now) }

// print writes a line, with strings escaped.
func (p *picture) print(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = html.EscapeString(printable.Line(text))
		}
	}
	fmt.Fprintf(p, format+"\n", args...)
}

func (p *picture) draw(title string, rows []*row) {
	height := headHeight + len(rows)*rowHeight + axisHeight
	p.print(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="13" role="img" aria-label="%s">`,
		width, height, width, height, title)
	p.print(`<rect width="%d" height="%d" fill="#ffffff"/>`, width, height)
	p.print(`<text x="16" y="28" font-size="16" font-weight="bold">%s</text>`, title)
	p.print(`<text x="16" y="46" font-size="11" fill="#57606a">%s, %s</text>`, p.start.UTC().Format(time.RFC3339), milliseconds(p.total))
	for i := range time.Duration(5) {
		at := p.total * i / 4
		p.print(`<path d="M%.1f %dV%d" stroke="#d8dee4"/>`, p.x(at), headHeight-4, height-axisHeight+4)
		p.print(`<text x="%.1f" y="%d" font-size="11" fill="#57606a" text-anchor="middle">%s</text>`, p.x(at), height-axisHeight+18, milliseconds(at))
	}
	for i, shown := range rows {
		p.row(headHeight+i*rowHeight, shown)
	}
	p.print("</svg>")
}

func (p *picture) row(y int, shown *row) {
	status := cmp.Or(shown.status, "not ended")
	p.print(`<g><title>%s</title>`, strings.Join(append([]string{shown.name + ": " + status}, shown.details...), " · "))
	p.print(`<text x="16" y="%d">%s</text>`, y+17, fmt.Sprintf("%.26s", shown.name))
	value := status
	if !shown.begin.IsZero() {
		value = milliseconds(p.end(shown.end).Sub(shown.begin)) + ", " + status
		opacity := 1.0
		if shown.run {
			opacity = .5
		}
		p.bar(y, cmp.Or(fills[bootstrap.Status(status)], "#0969da"), opacity, shown.begin, shown.end)
	}
	for _, w := range shown.waits {
		p.print(`<g><title>waiting for %s: %s</title>`, w.what, milliseconds(p.end(w.end).Sub(w.begin)))
		p.bar(y, "#ffffff", .6, w.begin, w.end)
		p.print(`</g>`)
	}
	p.print(`<text x="%d" y="%d" font-size="11" fill="#57606a">%s</text></g>`, labels+bars+12, y+17, value)
}

func (p *picture) bar(y int, fill string, opacity float64, begin, end time.Time) {
	from := p.x(begin.Sub(p.start))
	p.print(`<rect x="%.1f" y="%d" width="%.1f" height="14" fill="%s" opacity="%g"/>`, from, y+6, max(2, p.x(p.end(end).Sub(p.start))-from), fill, opacity)
}

// x is the position of a time since the start.
func (p *picture) x(at time.Duration) float64 {
	return labels + bars*float64(at)/float64(max(1, p.total))
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }
