// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Campaign plays points of scenarios.
type Campaign struct {
	Binary string              // of Nodeinit
	Work   string              // a directory below /tmp, or of another place that nodes see
	Limit  int                 // number of points of each scenario; 0 means all
	Wanted func(Point) bool    // nil selects every point
	Done   func(Verdict) error // called for each point that was reached
}

// Play plays the points of one scenario.
func (c Campaign) Play(ctx context.Context, scenario string) error {
	work := filepath.Join(c.Work, scenario)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	for _, s := range Scenarios(work) {
		if s.Name == scenario {
			return c.play(ctx, work, s)
		}
	}
	return fmt.Errorf("no scenario is called %q", scenario)
}

func (c Campaign) play(ctx context.Context, work string, s Scenario) (err error) {
	st, err := newStand(ctx, c.Binary, work, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.node.Close()) }()
	points, err := st.recorded(ctx)
	if err != nil {
		return err
	}
	spread(points)
	played := 0
	for _, p := range points {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if c.Limit > 0 && played == c.Limit {
			break
		}
		if c.Wanted != nil && !c.Wanted(p) {
			continue
		}
		played++
		v, err := st.try(ctx, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if err := c.Done(v); err != nil {
			return err
		}
		if v.Violation == "" {
			continue
		}
		// The state of that node is unknown now.
		if err := st.node.Close(); err != nil {
			return err
		}
		next, err := newStand(ctx, c.Binary, work, s)
		if err != nil {
			return err
		}
		st = next
	}
	return nil
}

// recorded records the calls on a node, and restores the node.
func (s *stand) recorded(ctx context.Context) ([]Point, error) {
	if err := s.toStart(ctx); err != nil {
		return nil, err
	}
	points, err := s.record(ctx)
	if err == nil {
		err = s.node.clean(ctx, s.undo...)
	}
	return points, err
}
