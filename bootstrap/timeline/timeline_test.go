// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package timeline_test

import (
	"context"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/timeline"
)

// step takes some time and then changes something, or fails.
func step(name string, d time.Duration, err error, after ...string) bootstrap.Step {
	done := false
	return bootstrap.Step{Name: name, After: after, Action: bootstrap.Func(
		"a change of "+name, func(context.Context) (bool, error) { return done, nil },
		func(context.Context) error { time.Sleep(d); done = err == nil; return err },
	)}
}

type element struct {
	XMLName xml.Name
	Fill    string    `xml:"fill,attr"`
	Opacity float64   `xml:"opacity,attr"`
	X       float64   `xml:"x,attr"`
	Width   float64   `xml:"width,attr"`
	Text    string    `xml:",chardata"`
	Inside  []element `xml:",any"`
}

// bars returns the bars of steps, runs and waits: only they have an opacity.
func (e element) bars() (found []element) {
	for _, in := range e.Inside {
		if in.XMLName.Local == "rect" && in.Opacity > 0 {
			found = append(found, in)
		}
		found = append(found, in.bars()...)
	}
	return found
}

func drawn(t *testing.T, r *timeline.Recorder) (svg element, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "drawn.svg")
	require.NoError(t, r.WriteFile(file))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(content, &svg), string(content))
	return svg, string(content)
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
		}, Prepare: func(ctx context.Context, _ *bootstrap.Plan) error { // as for a lock, in no step
			bootstrap.Waiting(ctx, "the lock", time.Minute)
			time.Sleep(time.Until(free))
			return nil
		}}
		_, err := plan.Apply(t.Context())
		require.Error(t, err)

		svg, text := drawn(t, &r)
		bars := svg.bars()
		const gray, red, white, green = "#8c959f", "#cf222e", "#ffffff", "#1a7f37"
		want := []struct {
			fill       string
			opacity    float64
			begin, end float64 // in milliseconds
		}{
			{gray, 1, 0, 100},     // resolve
			{red, .5, 100, 450},   // the run
			{white, .6, 100, 300}, // its wait
			{green, 1, 300, 350},  // first
			{red, 1, 350, 450},    // second
		}
		require.Len(t, bars, len(want), "a step that did not run has none")
		origin, scale := bars[0].X, bars[0].Width/100
		for i, w := range want {
			require.Equal(t, w.fill, bars[i].Fill)
			require.InDelta(t, w.opacity, bars[i].Opacity, .01)
			require.InDelta(t, w.begin, (bars[i].X-origin)/scale, .5, i)
			require.InDelta(t, w.end-w.begin, bars[i].Width/scale, .5, i)
		}
		for _, said := range []string{
			">apply</text>", ", 450.0 ms</text>", ">112.5 ms</text>", ">50.0 ms, changed</text>", ">100.0 ms, failed</text>", ">blocked</text>",
			"<title>second: failed · ", "no &lt;space&gt; left", "<title>waiting for the lock: 200.0 ms</title>", "<title>apply: failed · 3 steps: ",
		} {
			require.Contains(t, text, said)
		}

		require.NotRegexp(t, `(src|href|class)=|<style|@import|url\(|var\(`, text, "plain fills only")
	})
}

// An apply that changes nothing, since a check has failed, is told after the look at all steps:
// each bar is where the look at its step was.
func TestPLAN21_ACheckThatFailsIsDrawnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r timeline.Recorder
		looks := func(name string, err error) bootstrap.Step {
			return bootstrap.Step{Name: name, Action: bootstrap.Func(name, func(context.Context) (bool, error) {
				time.Sleep(50 * time.Millisecond)
				return true, err
			}, nil)}
		}
		plan := bootstrap.Plan{Trace: r.Trace(), Steps: []bootstrap.Step{looks("first", nil), looks("second", bootstrap.Certain(errors.New("no disk")))}}
		_, err := plan.Apply(t.Context())
		require.ErrorContains(t, err, "no disk")
		svg, text := drawn(t, &r)
		require.Contains(t, text, ">50.0 ms, failed</text>")
		bars := svg.bars()
		require.Len(t, bars, 3, "the run, and two steps")
		require.InDelta(t, bars[0].X, bars[1].X, 1)
		require.InDelta(t, bars[1].X+bars[1].Width, bars[2].X, 1)
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

// A run counts as failed exactly if its plan does: not for an optional step, but for the
// context's end.
func TestARunFailsWithItsPlan(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for want, ctx := range map[string]context.Context{"<title>apply: unchanged · ": t.Context(), "<title>apply: failed · ": ended} {
		var r timeline.Recorder
		plan := bootstrap.Plan{Trace: r.Trace(), Steps: []bootstrap.Step{{Name: "a", Optional: true, Action: bootstrap.Func("fail", nil, nil)}}}
		_, err := plan.Apply(ctx)
		require.Equal(t, ctx == ended, err != nil)
		_, text := drawn(t, &r)
		require.Contains(t, text, want)
	}
}

func TestWhatOthersChoseIsEscaped(t *testing.T) {
	var r timeline.Recorder
	r.Begin("a<b\x1b[2J\n"+strings.Repeat("long", 100))(bootstrap.Failed, "</title><script>alert(1)</script>", "\xff")
	_, text := drawn(t, &r)
	require.NotContains(t, text, "<script")
	require.NotContains(t, text, "\x1b")
	require.Contains(t, text, "&lt;/title&gt;&lt;script&gt;")
}
