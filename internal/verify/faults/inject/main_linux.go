// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"
	"time"

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
	played, err := c.played()
	if err != nil {
		return err
	}
	wanted, err := c.wanted(played)
	if err != nil {
		return err
	}
	todo := faults.Campaign{Binary: binary, Work: work, Limit: c.limit, Seed: c.seed, Wanted: wanted, Done: func(v faults.Verdict) error {
		played[v.Point] = v
		return c.note(v)
	}}
	begun := time.Now()
	for i, scenario := range c.scenarios {
		if c.last > 0 { // unused time of one scenario goes to the others
			todo.For = max(1, (c.last-time.Since(begun))/time.Duration(len(c.scenarios)-i))
		}
		if err := todo.Play(ctx, scenario); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", scenario, err)
		}
	}
	return c.report(played)
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

// wanted returns the points of this share that were not played yet.
func (c campaign) wanted(played map[faults.Point]faults.Verdict) (func(faults.Point) bool, error) {
	var i, n uint32
	if _, err := fmt.Sscanf(c.shard, "%d/%d", &i, &n); err != nil || i >= n {
		return nil, fmt.Errorf("-shard %q is not I/N: %w", c.shard, err)
	}
	return func(p faults.Point) bool {
		h := fnv.New32()
		h.Write([]byte(p.String() + "#"))
		_, before := played[p]
		return h.Sum32()>>8%n == i && !before && strings.HasPrefix(p.String(), c.point)
	}, nil
}

func (c campaign) played() (map[faults.Point]faults.Verdict, error) {
	played := map[faults.Point]faults.Verdict{}
	f, err := os.Open(c.state)
	if errors.Is(err, fs.ErrNotExist) || c.state == "" {
		return played, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for d := json.NewDecoder(bufio.NewReader(f)); d.More(); {
		var v faults.Verdict
		if err := d.Decode(&v); err != nil {
			return nil, fmt.Errorf("%s: %w", c.state, err)
		}
		played[v.Point] = v
	}
	return played, nil
}

// note prints a violation at once, and keeps every verdict.
func (c campaign) note(v faults.Verdict) (err error) {
	if v.Violation != "" {
		fmt.Printf("%s\n  call: %s\n  exit status %d: %s\n  violation: %s\n", v.Point, v.Line, v.Code, indent(v.Output), indent(v.Violation))
	}
	if c.state == "" {
		return nil
	}
	f, err := os.OpenFile(c.state, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return json.NewEncoder(f).Encode(v)
}

func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

// report prints a table of the points that were reached.
func (c campaign) report(played map[faults.Point]faults.Verdict) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "scenario\t%s\treached\tsucceeded\tviolations\t\n", strings.Join(faults.Faults(), "\t"))
	violations := 0
	for _, scenario := range c.scenarios {
		sum := map[string]int{}
		for p, v := range played {
			if p.Scenario != scenario || v.Line == "" {
				continue
			}
			sum[p.Fault]++
			sum["all"]++
			if v.Code == 0 {
				sum["ok"]++
			}
			if v.Violation != "" {
				sum["bad"]++
			}
		}
		fmt.Fprintf(w, "%s\t", scenario)
		for _, fault := range faults.Faults() {
			fmt.Fprintf(w, "%d\t", sum[fault])
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t\n", sum["all"], sum["ok"], sum["bad"])
		violations += sum["bad"]
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if violations > 0 {
		return fmt.Errorf("%d violations", violations)
	}
	return nil
}
