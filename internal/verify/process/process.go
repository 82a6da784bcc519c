// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package process runs the programs of the proofs: one to its end, or servers beside a
// test, each with a log file. A program runs on this machine, or where a start function
// starts it, such as (*testns.Node).StartCommand.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Output runs the program to its end and returns its output, on both streams. If it
// cannot be started or fails, the error has that too. A nil start starts it here.
func Output(cmd *exec.Cmd, start func(*exec.Cmd) error) (string, error) {
	if start == nil {
		start = (*exec.Cmd).Start
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, tail(out.String()))
	}
	return out.String(), err
}

// Process is a running server.
type Process struct {
	name, log string
	cmd       *exec.Cmd
	done      chan struct{} // closed when it has ended
	err       error         // of its end
}

// Start starts a server, which the errors call by the name. Its output is appended to
// the file log. With a nil start it runs here, and dies with this process.
func Start(name string, cmd *exec.Cmd, log string, start func(*exec.Cmd) error) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if start == nil {
		dieWithParent(cmd)
		start = (*exec.Cmd).Start
	}
	p := &Process{name: name, log: log, cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the program's parent is this thread, which must outlive the program
		defer runtime.UnlockOSThread()
		err := start(cmd)
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// End sends the signal and waits; a process that does not end within a minute is
// killed. One that has ended, or a nil one, is fine.
func (p *Process) End(signal os.Signal) {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(signal) // it may already have ended
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Wait waits for the end, and returns the result of [exec.Cmd.Wait].
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Log returns the process's output.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Until calls ask until it returns nil. It gives up when ctx is done, with the processes'
// last output, or when one of them has ended.
func Until(ctx context.Context, what string, ask func(context.Context) error, processes ...*Process) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if i := slices.IndexFunc(processes, (*Process).ended); i >= 0 {
			return fmt.Errorf("waited in vain until %s: %s has ended: %w", what, processes[i].name, said(processes[i]))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, errors.Join(err, said(processes...)))
		}
	}
}

// said returns the last output of processes.
func said(processes ...*Process) error {
	var errs []error
	for _, p := range processes {
		errs = append(errs, fmt.Errorf("%s said last: %s", p.name, tail(p.Log())))
	}
	return errors.Join(errs...)
}

// tail returns the end of the output.
func tail(text string) string {
	const most = 3000
	return strings.TrimSpace(text[max(0, len(text)-most):])
}
