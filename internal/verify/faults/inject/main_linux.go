// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/slipway-dev/slipway/internal/verify/faults"
)

func (c campaign) run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	work, err := os.MkdirTemp("", "slipway-faults-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	binary, err := faults.Nodeinit.Build(ctx)
	if err != nil {
		return err
	}
	if c.power > 0 {
		return c.cutPower(ctx, binary, work)
	}
	violations := 0
	for _, scenario := range c.scenarios {
		todo := faults.Campaign{Binary: binary, Work: work, Wanted: func(p faults.Point) bool { return strings.HasPrefix(p.String(), c.point) }}
		sum := tally{}
		todo.Done = sum.add
		if err := todo.Play(ctx, scenario); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", scenario, err)
		}
		fmt.Printf("%-16s reached %d, succeeded %d, violations %d\n", scenario, sum.reached, sum.succeeded, sum.violations)
		violations += sum.violations
	}
	if violations > 0 {
		return fmt.Errorf("%d violations", violations)
	}
	return nil
}

type tally struct{ reached, succeeded, violations int }

// add counts a verdict, and prints a violation at once.
func (t *tally) add(v faults.Verdict) error {
	if v.Line != "" {
		t.reached++
	}
	if v.Line != "" && v.Code == 0 {
		t.succeeded++
	}
	if v.Violation != "" {
		t.violations++
		fmt.Printf("%s\n  call: %s\n  exit status %d: %s\n  violation: %s\n", v.Point, v.Line, v.Code, indent(v.Output), indent(v.Violation))
	}
	return nil
}

// cutPower cuts the power at points of the commands that write to a disk.
func (c campaign) cutPower(ctx context.Context, binary, work string) error {
	images, torn := 0, 0
	for _, system := range []string{"ext4", "xfs"} {
		for _, command := range []string{"apply", "install-cni"} {
			before := images
			cuts := faults.PowerCuts{Binary: binary, Work: work, FileSystem: system, Command: command, Limit: c.power, Done: func(cut faults.Cut) error {
				if images++; cut.Violation != "" {
					torn++
					fmt.Printf("%s %s, committed: %t: %s\n", system, cut.Point, cut.Committed, indent(cut.Violation))
				}
				return ctx.Err()
			}}
			if err := cuts.Play(ctx); err != nil {
				return err
			}
			fmt.Printf("%s on %s: %d images\n", command, system, images-before)
		}
	}
	fmt.Printf("%d images, %d violations\n", images, torn)
	if torn > 0 {
		return fmt.Errorf("%d violations", torn)
	}
	return nil
}

func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }
