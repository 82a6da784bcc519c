// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
)

// Walk runs random operations by a seed, on a node in memory with its files in dir, and
// undoes everything at the end. Each apply has another owner, like each pod of a
// DaemonSet. An error that is a [Violation] has a trace without unnecessary operations.
func (s Scenario) Walk(ctx context.Context, dir string, seed uint64, operations int, options Options) error {
	reboots, err := options.reboots(dir)
	if err != nil {
		return err
	}
	var done []operation
	next := func(b *beliefs, n int, draw *rand.Rand) (op operation, end bool) {
		op, end = draws(b, n, operations, reboots, draw)
		done = append(done, op)
		return op, end
	}
	err = s.inMemory(ctx, dir, seed, options, next)
	for i := len(done) - 1; i >= 0 && isViolation(err); i-- {
		fewer := slices.Delete(slices.Clone(done), i, i+1)
		if again := s.inMemory(ctx, dir, seed, options, given(fewer)); isViolation(again) {
			done, err = fewer, again
		}
	}
	return err
}

func isViolation(err error) bool { return errors.As(err, new(*Violation)) }

// script returns the nth operation, if there is one.
type script func(b *beliefs, n int, draw *rand.Rand) (op operation, end bool)

// given runs ops, except those without anything recorded.
func given(ops []operation) script {
	return func(b *beliefs, n int, _ *rand.Rand) (operation, bool) {
		if n >= len(ops) {
			return operation{}, true
		}
		if op := ops[n]; op.Do == apply || op.Do == reboot || b.Agents[op.Agent].Recorded {
			return op, false
		}
		return operation{Do: reboot, Kill: nothing}, false
	}
}

// nothing marks an operation to skip.
const nothing = -1

func (s Scenario) inMemory(ctx context.Context, dir string, seed uint64, options Options, next script) error {
	m, err := newMemory(s, dir, options.Naive)
	if err == nil {
		err = s.walk(ctx, m, seed, next)
	}
	return errors.Join(err, os.RemoveAll(m.root))
}

func (s Scenario) walk(ctx context.Context, m machine, seed uint64, next script) error {
	before, err := m.observe()
	if err != nil {
		return err
	}
	j := &judge{m, newBeliefs(s), before, []string{fmt.Sprint("seed ", seed)}}
	draw := rand.New(rand.NewPCG(seed, 0))
	for n := 0; ; n++ {
		op, end := next(j.beliefs, n, draw)
		if end {
			return nil
		}
		if op.Kill == nothing {
			continue
		}
		if _, err := j.do(ctx, op); err != nil {
			return err
		}
	}
}

// draws returns a random nth operation; a few are releases, and half of the others are
// killed. After the last, the agents are undone in random order.
func draws(b *beliefs, n, last int, reboots bool, draw *rand.Rand) (op operation, end bool) {
	ops := b.operations(reboots)
	if n >= last {
		ops = slices.DeleteFunc(ops, func(op operation) bool { return op.Do != uninstall && op.Do != release })
	}
	if len(ops) == 0 {
		return op, true
	}
	op = ops[draw.IntN(len(ops))]
	for op.Do == release && draw.IntN(4) > 0 {
		op = ops[draw.IntN(len(ops))]
	}
	if (op.Do == apply || op.Do == uninstall) && n < last && draw.IntN(2) == 0 {
		op.Kill = 1 + draw.IntN(40)
	}
	if op.Do == apply {
		op.Owner = fmt.Sprint("pod-", n)
	}
	return op, false
}
