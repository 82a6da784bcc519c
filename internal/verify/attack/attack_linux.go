// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// pair are two names in the attacker's directory.
type pair [2]string

// target is an operation to attack.
type target struct {
	name  string
	pairs []pair       // exchanged meanwhile
	setup func(*arena) // makes the names of the pairs, before each attempt
	try   func(*arena) error
	naive func(*arena) error // the same operation as code that trusts paths does it
	slow  bool               // tried a quarter as often
	mount bool               // mounts are made, or removed
	old   bool               // tried with mount(2) only
}

// isolate runs the program again in a new mount namespace, with a directory to mount on.
func isolate() error {
	dir, err := os.MkdirTemp("", "slipway-attack-")
	if err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe", slices.Concat([]string{"-as", "defender"}, os.Args[1:], []string{dir})...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP, Pdeathsig: unix.SIGKILL}
	runtime.LockOSThread() // the child would end with the thread that has started it
	return errors.Join(cmd.Run(), os.Remove(dir))
}

// attack tries all targets, and prints the results.
func attack(dir string, n int, only *regexp.Regexp) error {
	if err := unix.Mount("attack", dir, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount a tmpfs on %s: %w", dir, err)
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	unix.Umask(0o077) // so that modes have to be corrected
	list := slices.DeleteFunc(targets(), func(t target) bool { return !only.MatchString(t.name) })
	if len(list) == 0 {
		return fmt.Errorf("no target is called %q", only)
	}
	// Rows are printed one by one, because all of them may take hours.
	width := len(slices.MaxFunc(list, func(a, b target) int { return len(a.name) - len(b.name) }).name)
	row := func(columns ...any) {
		fmt.Printf("%*s  %9v %9v %10v %8v %12v %14v\n", append([]any{width}, columns...)...)
	}
	row("target", "tries", "done", "exchanges", "escapes", "naive tries", "naive escapes")
	var errs []error
	for _, t := range list {
		tries := n
		if t.slow {
			tries = max(n/4, 1)
		}
		held, naive, err := t.attack(root, tries)
		row(t.name, held.tries, held.done, held.exchanges, held.escapes, naive.tries, naive.escapes)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// outcome is the result of many attempts.
type outcome struct {
	tries, done, escapes int
	exchanges            uint64
	first                string // the first escape
	refused              error  // the last refusal
}

// attack tries the operation n times, then on until one attempt succeeded, and the naive
// version a tenth as often, then on until that has lost: on one processor both may take
// some hundred attempts.
func (t target) attack(root string, n int) (held, naive outcome, err error) {
	const generous = 100_000
	if held, err = t.run(root, t.try, func(o outcome) bool { return o.tries >= n && o.done > 0 || o.tries >= generous }); err != nil {
		return held, naive, fmt.Errorf("%s: %w", t.name, err)
	}
	naive, err = t.run(root, t.naive, func(o outcome) bool { return o.tries >= n/10 && o.escapes > 0 || o.tries >= generous })
	switch {
	case err != nil:
		err = fmt.Errorf("%s, naive: %w", t.name, err)
	case held.escapes > 0:
		err = fmt.Errorf("%s: %d escapes, the first: %s", t.name, held.escapes, held.first)
	case held.done == 0:
		err = fmt.Errorf("%s: no attempt succeeded, the last: %w", t.name, held.refused)
	case naive.escapes == 0:
		err = fmt.Errorf("%s: the attacker is too weak: he has not beaten the naive version either", t.name)
	}
	return held, naive, err
}

// run tries op until isEnough returns true, on its own thread, which op may restrict.
func (t target) run(root string, op func(*arena) error, isEnough func(outcome) bool) (o outcome, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if t.old {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			if err = refuseNewMountCalls(); err != nil {
				return
			}
		}
		err = t.tryUntil(isEnough, root, op, &o)
	}()
	<-done
	return o, err
}

func (t target) tryUntil(isEnough func(outcome) bool, root string, op func(*arena) error, o *outcome) (err error) {
	a := &arena{root: root, mounts: t.mount, ctx: context.Background()}
	him, err := startAttacker(root, t.pairs)
	if err != nil {
		return err
	}
	for !isEnough(*o) {
		if err = t.once(a, him, op, o); err != nil {
			break
		}
	}
	a.reset()
	return errors.Join(err, a.err, him.end())
}

func (t target) once(a *arena, him *attacker, op func(*arena) error, o *outcome) error {
	a.reset()
	t.setup(a)
	if err := a.ready(); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := him.attack(); err != nil {
		return err
	}
	opErr := op(a)
	exchanges, err := him.stop()
	if err != nil {
		return err
	}
	harm, err := a.harm()
	if err != nil {
		return fmt.Errorf("look at the result: %w", err)
	}
	o.tries++
	o.exchanges += exchanges
	if opErr == nil {
		o.done++
	} else {
		o.refused = opErr
	}
	if harm != "" {
		o.escapes++
		if o.first == "" {
			o.first = harm
		}
	}
	return nil
}
