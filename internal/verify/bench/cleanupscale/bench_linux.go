// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// bench is what to measure.
type bench struct {
	counts           []int
	runs, singleRuns int
	tcx              bool
	nice             int    // the priority of what is measured
	cilium           string // path of a cilium-dbg, or empty
}

// outcome is one measurement.
type outcome struct {
	Total     time.Duration `json:"total"`
	Inventory time.Duration `json:"inventory"`
	stall     time.Duration // the longest wait for RTNL elsewhere
	idle      time.Duration // the same before it began
	cpu       time.Duration // of the process
	memory    int64         // bytes, at most
	left      int           // links that are still there
}

// row is what was measured with one number of links.
type row struct {
	links                int
	ours, single, cilium []outcome
}

func (b bench) run(w io.Writer) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("needs root")
	}
	fmt.Fprintf(w, "%s, %d CPUs, load average %s, measured at nice %d\n", kernel(), runtime.NumCPU(), loadAverage(), b.nice)
	var rows []row
	for _, n := range b.counts {
		r := row{links: n}
		for i := range max(b.runs, b.singleRuns) {
			for _, way := range []struct {
				name string
				runs int
				out  *[]outcome
			}{{roleOurs, b.runs, &r.ours}, {roleSingle, b.singleRuns, &r.single}, {roleCilium, b.singleRuns, &r.cilium}} {
				if i >= way.runs || way.name == roleCilium && b.cilium == "" {
					continue
				}
				got, err := b.measure(way.name, n)
				if err != nil {
					return fmt.Errorf("%s with %d links: %w", way.name, n, err)
				}
				fmt.Fprintf(w, "# %s, %d links: %v, CPU %v, stall %v (idle %v), %d MiB, %d links left, load %s\n", way.name, n,
					ms(got.Total), ms(got.cpu), ms(got.stall), ms(got.idle),
					got.memory>>20, got.left, loadAverage())
				*way.out = append(*way.out, got)
			}
		}
		rows = append(rows, r)
	}
	fmt.Fprintf(w, "load average %s\n\n", loadAverage())
	return table(w, rows, b.cilium != "")
}

// measure runs f's work in a process of its own, in namespaces of their own.
func (b bench) measure(role string, links int) (out outcome, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread goes with its namespaces
		out, err = b.measureHere(role, links)
	}()
	<-done
	return out, err
}

func (b bench) measureHere(role string, links int) (outcome, error) {
	// The thread is thrown away; the child that it starts has it, too.
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, b.nice); err != nil {
		return outcome{}, fmt.Errorf("set priority: %w", err)
	}
	if err := enter(); err != nil {
		return outcome{}, err
	}
	pods, err := newNamespace()
	if err != nil {
		return outcome{}, err
	}
	defer pods.Close()
	if err := endpoints(links, b.tcx, pods); err != nil {
		return outcome{}, fmt.Errorf("make links: %w", err)
	}
	before, err := countLinks()
	if err != nil {
		return outcome{}, err
	}
	if before < links {
		return outcome{}, fmt.Errorf("only %d links are there", before)
	}
	out, err := b.watch(role)
	if err != nil {
		return outcome{}, err
	}
	left, err := countLinks()
	out.left = left - 1 // lo
	return out, err
}

// watch runs a process that removes links, beside another user of RTNL.
func (b bench) watch(role string) (out outcome, err error) {
	p, err := newProbe(b.nice)
	if err != nil {
		return out, err
	}
	time.Sleep(time.Second) // the idle kernel
	idle := p.reset()
	cmd := exec.Command("/proc/self/exe", childFlag, role)
	if role == roleCilium {
		cmd = exec.Command(b.cilium, "post-uninstall-cleanup", "-f", "--all-state")
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	runErr := cmd.Run()
	out.Total = time.Since(start)
	stall, err := p.stop()
	switch {
	case runErr != nil:
		return out, fmt.Errorf("%w: %s", runErr, stderr.String())
	case err != nil:
		return out, err
	}
	if role != roleCilium {
		if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
			return out, err
		}
	}
	out.stall, out.idle = stall, idle
	out.cpu = cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime()
	out.memory = int64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) << 10
	return out, nil
}

// median returns the middle of the outcomes by a number, or 0 of none.
func median(list []outcome, number func(outcome) time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	var all []time.Duration
	for _, o := range list {
		all = append(all, number(o))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func total(o outcome) time.Duration { return o.Total }

func table(w io.Writer, rows []row, cilium bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "links\tours\tof it inventory\tper link\tstall median\tstall worst\tidle worst\tmemory\tone by one\tper link\tits stall\tratio\t")
	if cilium {
		fmt.Fprint(t, "cilium\tits links left\tratio\t")
	}
	fmt.Fprintln(t)
	for _, r := range rows {
		ours, single := median(r.ours, total), median(r.single, total)
		stall := func(o outcome) time.Duration { return o.stall }
		worst := slices.MaxFunc(r.ours, func(a, b outcome) int { return cmp.Compare(a.stall, b.stall) })
		idle := slices.MaxFunc(r.ours, func(a, b outcome) int { return cmp.Compare(a.idle, b.idle) })
		memory := slices.MaxFunc(r.ours, func(a, b outcome) int { return cmp.Compare(a.memory, b.memory) })
		fmt.Fprintf(t, "%d\t%v\t%v\t%v\t%v\t%v\t%v\t%d MiB\t%v\t%v\t%v\t%s\t", r.links, ms(ours),
			ms(median(r.ours, func(o outcome) time.Duration { return o.Inventory })), perLink(ours, r.links),
			ms(median(r.ours, stall)), ms(worst.stall), ms(idle.idle), memory.memory>>20,
			ms(single), perLink(single, r.links), ms(median(r.single, stall)), ratio(single, ours))
		if cilium {
			theirs := median(r.cilium, total)
			fmt.Fprintf(t, "%v\t%d\t%s\t", ms(theirs), r.cilium[0].left, ratio(theirs, ours))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func perLink(d time.Duration, links int) time.Duration {
	return (d / time.Duration(links)).Round(time.Microsecond)
}

func ratio(a, b time.Duration) string {
	if a == 0 || b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(a)/float64(b))
}

func kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown kernel"
	}
	return "Linux " + unix.ByteSliceToString(name.Release[:])
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
