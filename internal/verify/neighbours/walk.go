// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// Walk does what a seed draws, on a node in memory with its files in dir, and undoes
// everything at the end. Each apply is by another owner, as each pod of a DaemonSet is.
func (s Scenario) Walk(ctx context.Context, dir string, seed uint64, operations int, options Options) error {
	m, err := newMemory(s, dir, options.Naive)
	if err != nil {
		return err
	}
	return s.walk(ctx, m, seed, operations, options.Reboots)
}

func (s Scenario) walk(ctx context.Context, m machine, seed uint64, operations int, reboots bool) error {
	before, err := m.observe()
	if err != nil {
		return err
	}
	j := &judge{m, newBeliefs(s), before, []string{fmt.Sprint("seed ", seed)}}
	draw := rand.New(rand.NewPCG(seed, 0))
	for n := range operations {
		op := draws(draw, j.operations(reboots))
		if op.Do == apply {
			op.Owner = fmt.Sprint("pod-", n)
		}
		if _, err := j.do(ctx, op); err != nil {
			return err
		}
	}
	for _, agent := range draw.Perm(len(j.Agents)) {
		if !j.Agents[agent].Recorded {
			continue
		}
		op := operation{Agent: agent, Do: uninstall}
		if draw.IntN(8) == 0 {
			op.Do = release
		}
		if _, err := j.do(ctx, op); err != nil {
			return err
		}
	}
	return nil
}

// draws draws an operation, few of them releases, and half of the others killed.
func draws(draw *rand.Rand, ops []operation) operation {
	op := ops[draw.IntN(len(ops))]
	for op.Do == release && draw.IntN(4) > 0 {
		op = ops[draw.IntN(len(ops))]
	}
	if op.Do != reboot && op.Do != release && draw.IntN(2) == 0 {
		op.Kill = 1 + draw.IntN(40)
	}
	return op
}
