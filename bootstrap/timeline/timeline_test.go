// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package timeline_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/timeline"
)

// step takes a while to change something, or to fail.
func step(name string, d time.Duration, err error, after ...string) bootstrap.Step {
	done := false
	return bootstrap.Step{Name: name, After: after, Action: bootstrap.Func(
		func(context.Context) ([]string, error) {
			if done {
				return nil, nil
			}
			return []string{"a change of " + name}, nil
		},
		func(context.Context) error { time.Sleep(d); done = err == nil; return err },
	)}
}

type element struct {
	XMLName xml.Name
	Class   string    `xml:"class,attr"`
	X       float64   `xml:"x,attr"`
	Width   float64   `xml:"width,attr"`
	Text    string    `xml:",chardata"`
	Inside  []element `xml:",any"`
}

func (e element) all(name, class string) (found []element) {
	for _, in := range e.Inside {
		if in.XMLName.Local == name && strings.HasPrefix(in.Class, class) {
			found = append(found, in)
		}
		found = append(found, in.all(name, class)...)
	}
	return found
}

func drawn(t *testing.T, r *timeline.Recorder) (svg element, text string) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.WriteSVG(&b))
	require.NoError(t, xml.Unmarshal(b.Bytes(), &svg), b.String())
	return svg, b.String()
}

func TestBarsAreWhereTheStepsWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r timeline.Recorder
		end := r.Begin("resolve")
		time.Sleep(100 * time.Millisecond)
		end(bootstrap.Unchanged)
		free := time.Now().Add(200 * time.Millisecond)
		plan := bootstrap.Plan{Trace: r.Trace(), Steps: []bootstrap.Step{
			step("first", 50*time.Millisecond, nil),
			step("second", 100*time.Millisecond, errors.New("no <space> left")),
			step("third", 0, nil, "second"),
		}, Lock: func(ctx context.Context) (func() error, error) {
			bootstrap.Waiting(ctx, bootstrap.Wait{For: "the lock"})
			time.Sleep(time.Until(free))
			return func() error { return nil }, nil
		}}
		_, err := plan.Apply(t.Context())
		require.Error(t, err)

		svg, text := drawn(t, &r)
		bars := svg.all("rect", "bar")
		want := []struct {
			class      string
			begin, end float64 // in milliseconds
		}{
			{"bar unchanged", 0, 100},
			{"bar failed run", 100, 450},
			{"bar wait", 100, 300},
			{"bar changed", 300, 350},
			{"bar failed", 350, 450},
		}
		require.Len(t, bars, len(want), "what was not tried has none")
		origin, scale := bars[0].X, bars[0].Width/100
		for i, w := range want {
			require.Equal(t, w.class, bars[i].Class)
			require.InDelta(t, w.begin, (bars[i].X-origin)/scale, .5, w.class)
			require.InDelta(t, w.end-w.begin, bars[i].Width/scale, .5, w.class)
		}
		for _, said := range []string{
			">apply</text>", ", 450.0 ms</text>", ">100 ms</text>", ">50.0 ms, changed</text>", ">100.0 ms, failed</text>", ">blocked</text>",
			"<title>second: failed · ", "no &lt;space&gt; left", "<title>waiting for the lock: 200.0 ms</title>", "<title>apply: failed · 3 steps: ",
		} {
			require.Contains(t, text, said)
		}

		var page bytes.Buffer
		require.NoError(t, r.WriteHTML(&page))
		require.Contains(t, page.String(), text, "the page has the image")
		require.Contains(t, page.String(), "<tr><td>second<td>failed<td>+350.0 ms<td>100.0 ms<td>\n<p>")
		require.Contains(t, page.String(), "<tr><td>third<td>blocked<td><td><td>")
		require.NotRegexp(t, `(src|href)=|@import|url\([^#]`, page.String(), "it needs nothing else")
	})
}

func TestWhatHasNotEndedIsDrawnUpToNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r timeline.Recorder
		r.Begin("config")
		time.Sleep(3 * time.Second)
		_, text := drawn(t, &r)
		require.Contains(t, text, ">3000.0 ms, not ended</text>")
		require.Contains(t, text, ">nothing ran</text>", "no plan did")
	})
}

// A run fails with its plan: not with an optional step, but with the context's end.
func TestARunFailsWithItsPlan(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for want, ctx := range map[string]context.Context{"<title>apply: unchanged · ": t.Context(), "<title>apply: failed · ": ended} {
		var r timeline.Recorder
		plan := bootstrap.Plan{Trace: r.Trace(), Steps: []bootstrap.Step{{Name: "a", Optional: true, Action: bootstrap.Func(nil, nil)}}}
		_, err := plan.Apply(ctx)
		require.Equal(t, ctx == ended, err != nil)
		_, text := drawn(t, &r)
		require.Contains(t, text, want)
	}
}

func TestTwoRecordersOfOnePlanAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var one, two timeline.Recorder
		plan := bootstrap.Plan{
			Trace: bootstrap.JoinTraces(one.Trace(), two.Trace()),
			Steps: []bootstrap.Step{step("first", time.Second, nil)},
			Lock: func(ctx context.Context) (func() error, error) {
				bootstrap.Waiting(ctx, bootstrap.Wait{For: "the lock"})
				time.Sleep(time.Second)
				return func() error { return nil }, nil
			},
		}
		_, err := plan.Apply(t.Context())
		require.NoError(t, err)
		_, first := drawn(t, &one)
		_, second := drawn(t, &two)
		require.Equal(t, first, second)
		require.Contains(t, first, "waiting for the lock")
	})
}

func TestNothing(t *testing.T) {
	svg, _ := drawn(t, new(timeline.Recorder))
	require.Empty(t, svg.all("rect", "bar"))
}

func TestWhatOthersChoseIsEscaped(t *testing.T) {
	var r timeline.Recorder
	r.Title = `"><script>`
	r.Begin("a<b\x1b[2J\n"+strings.Repeat("long", 100))(bootstrap.Failed, "</title><script>alert(1)</script>", "\xff")
	_, text := drawn(t, &r)
	var page bytes.Buffer
	require.NoError(t, r.WriteHTML(&page))
	for _, text := range []string{text, page.String()} {
		require.NotContains(t, text, "<script")
		require.NotContains(t, text, "\x1b")
		require.Contains(t, text, "&lt;script&gt;")
	}
	require.Contains(t, page.String(), "<title>&#34;&gt;&lt;script&gt;</title>")
}

func TestAWriterThatFails(t *testing.T) {
	reader, w := io.Pipe()
	reader.Close()
	require.ErrorIs(t, new(timeline.Recorder).WriteSVG(w), io.ErrClosedPipe)
	require.ErrorIs(t, new(timeline.Recorder).WriteHTML(w), io.ErrClosedPipe)
}
