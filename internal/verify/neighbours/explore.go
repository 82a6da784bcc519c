// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
)

// Options limit the exploration of a scenario.
type Options struct {
	Depth   int  // length of the sequences of operations
	Naive   bool // each agent has its own journal directory
	Reboots bool // the node may be rebooted, unless its files are in memory
	NoKills bool // no process is killed, so that more can be done
}

// reboots reports whether a node with its files in dir may be rebooted.
func (o Options) reboots(dir string) (bool, error) {
	if !o.Reboots {
		return false, nil
	}
	d, err := durable.OpenDir(dir)
	if err != nil {
		return false, err
	}
	defer d.Close()
	volatile, err := d.InMemory()
	return !volatile, err
}

// Explored reports how far a scenario was explored.
type Explored struct {
	States     int  // states of the node and its journals, not counting different random names
	Operations int  // operations run
	All        bool // there are no other states, after any number of operations
}

func (e Explored) String() string {
	text := fmt.Sprintf("%d states, %d operations", e.States, e.Operations)
	if e.All {
		text += ", and there are no others"
	}
	return text
}

// visited is a state that was reached.
type visited struct {
	image
	*beliefs
	trace []string
}

// explorer goes from state to state, the nearest first.
type explorer struct {
	*memory
	Options
	Explored
	before State
	seen   map[[sha256.Size]byte]bool
	next   []visited
}

// Explore runs the operations of agents in every order, on a node in memory with its
// files in dir. An error that is a [Violation] has a shortest trace.
func (s Scenario) Explore(ctx context.Context, dir string, options Options) (Explored, error) {
	m, err := newMemory(s, dir, options.Naive)
	if err == nil {
		options.Reboots, err = options.reboots(dir)
	}
	if err != nil {
		return Explored{}, err
	}
	x := &explorer{memory: m, Options: options, seen: map[[sha256.Size]byte]bool{}}
	if x.before, err = m.observe(); err != nil {
		return x.Explored, err
	}
	if err := x.reach(ctx, newBeliefs(s), nil); err != nil {
		return x.Explored, err
	}
	for len(x.next) > 0 && err == nil {
		v := x.next[0]
		x.next = x.next[1:]
		if len(v.trace) == options.Depth {
			err = errors.Join(x.ends(ctx, v), ctx.Err())
			continue
		}
		err = errors.Join(x.from(ctx, v), ctx.Err())
	}
	return x.Explored, err
}

// reach records the present state, unless it is known.
func (x *explorer) reach(ctx context.Context, b *beliefs, trace []string) error {
	now, err := x.save()
	if err != nil {
		return err
	}
	key, err := x.key(ctx, now, b)
	if err != nil || x.seen[key] {
		return err
	}
	x.seen[key] = true
	x.States++
	x.All = len(trace) < x.Depth
	x.next = append(x.next, visited{now, b, trace})
	return nil
}

// from runs each possible operation from v.
func (x *explorer) from(ctx context.Context, v visited) error {
	for _, op := range v.operations(x.Reboots) {
		killed, err := x.try(ctx, v, op)
		for op.Kill = 1; err == nil && killed && !x.NoKills; op.Kill++ {
			killed, err = x.try(ctx, v, op)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *explorer) try(ctx context.Context, v visited, op operation) (mayBeKilled bool, err error) {
	if err := x.load(v.image); err != nil {
		return false, err
	}
	j := &judge{x.memory, v.beliefs.clone(), x.before, slices.Clone(v.trace)}
	x.Operations++
	killed, err := j.do(ctx, op)
	if err != nil || op.Kill > 0 && !killed {
		return false, err
	}
	return killed || op.Kill == 0 && (op.Do == apply || op.Do == uninstall), x.reach(ctx, j.beliefs, j.trace)
}

// operations lists the possible operations.
func (b *beliefs) operations(reboots bool) (ops []operation) {
	for n, a := range b.Agents {
		for version := range b.scenario.Agents[n].Versions {
			ops = append(ops, operation{Agent: n, Do: apply, Version: version})
		}
		if a.Recorded {
			ops = append(ops, operation{Agent: n, Do: uninstall}, operation{Agent: n, Do: release})
		}
	}
	if reboots {
		ops = append(ops, operation{Do: reboot})
	}
	return ops
}

// ends undoes everything from v, in each order.
func (x *explorer) ends(ctx context.Context, v visited) error {
	for _, order := range orders(len(v.Agents)) {
		if err := x.load(v.image); err != nil {
			return err
		}
		j := &judge{x.memory, v.beliefs.clone(), x.before, slices.Clone(v.trace)}
		for _, agent := range order {
			if !v.Agents[agent].Recorded {
				continue
			}
			x.Operations++
			if _, err := j.do(ctx, operation{Agent: agent, Do: uninstall}); err != nil {
				return err
			}
		}
	}
	return nil
}

// orders returns the permutations of n things.
func orders(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, shorter := range orders(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(shorter), at, n-1))
		}
	}
	return all
}

// key is the same for states that differ only in times and random names.
func (x *explorer) key(ctx context.Context, i image, b *beliefs) ([sha256.Size]byte, error) {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(i.files)) {
		f := i.files[name]
		inRecord := strings.HasPrefix(filepath.ToSlash(name), record)
		if inRecord && strings.HasPrefix(filepath.Base(name), ".slipway-") {
			name = "temporary"
		}
		fmt.Fprintln(&text, name, f.mode)
		if !inRecord {
			fmt.Fprintln(&text, f.content)
		}
	}
	fmt.Fprintln(&text, i.mounts, i.values)
	recorded, err := x.recorded(ctx)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	for _, part := range []any{recorded, b.Agents, slices.Compact(slices.Sorted(slices.Values(b.Left)))} {
		raw, err := json.Marshal(part)
		if err != nil {
			return [sha256.Size]byte{}, err
		}
		fmt.Fprintf(&text, "%s\n", raw)
	}
	return sha256.Sum256([]byte(renamed(text.String()))), nil
}

// drawn matches random names, and hashes.
var drawn = regexp.MustCompile(`\b[a-z2-7]{16}\b|\b[a-z2-7]{26}\b|\b[0-9a-f]{64}\b`)

// renamed replaces random names by numbers.
func renamed(text string) string {
	numbers := map[string]string{}
	return drawn.ReplaceAllStringFunc(text, func(name string) string {
		if numbers[name] == "" {
			numbers[name] = fmt.Sprint("#", len(numbers))
		}
		return numbers[name]
	})
}

// recorded returns the content of the journals.
func (x *explorer) recorded(ctx context.Context) (all []any, err error) {
	turns := map[string][]int{}
	var pages [][]journal.Entry
	for _, agent := range x.scenario.Agents {
		node := (&site{root: x.root, naive: x.naive, boot: fmt.Sprint("boot-", x.boots)}).node(agent, operation{Do: check})
		j, err := node.Open(ctx, nil)
		if err != nil {
			return nil, err
		}
		entries, err := j.Entries()
		left, errLeft := j.LeftForGood()
		if err := errors.Join(err, errLeft, j.Close()); err != nil {
			return nil, err
		}
		for _, e := range entries {
			turns[e.Identity] = append(turns[e.Identity], e.Turn)
		}
		for _, l := range left {
			all = append(all, l.Kind, l.Object)
		}
		pages = append(pages, entries)
	}
	for _, entries := range pages {
		for i := range entries { // order counts for turns; for boots, only whether it is this one; for files, not the time of writing
			e := &entries[i]
			of := slices.Compact(slices.Sorted(slices.Values(turns[e.Identity])))
			e.After.File, e.Before.File = "", ""
			if e.Was != nil {
				was := *e.Was
				was.File = ""
				e.Was = &was
			}
			e.Turn, e.Time = slices.Index(of, e.Turn), time.Time{}
			if e.Boot != "" && e.Boot != fmt.Sprint("boot-", x.boots) {
				e.Boot = "another"
			} else if e.Boot != "" {
				e.Boot = "this"
			}
		}
		all = append(all, entries)
	}
	return all, nil
}
