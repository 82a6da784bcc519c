// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command gotest runs go test and prints a summary for people: a line for each package,
// the output of failed tests, and why tests were skipped.
//
//	gotest -short ./... + -C bootstrap/prom ./...
//
// The arguments are those of go test; a plus begins another go test, in turn. Without -p it
// tests twice as many packages at a time as there are processors: tests of namespaces, files
// and processes wait half of their time. Its exit status is 1 if a test failed, or nothing
// could be tested.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	begun, d := time.Now(), newDigest(os.Stdout)
	for _, args := range groups(os.Args[1:]) {
		if err := run(ctx, d, args); err != nil {
			fmt.Fprintln(os.Stderr, "gotest:", err)
			d.broken = true
		}
	}
	if !d.end(time.Since(begun)) {
		os.Exit(1)
	}
}

// groups splits the arguments at each plus.
func groups(args []string) (all [][]string) {
	for {
		i := slices.Index(args, "+")
		if i < 0 {
			return append(all, args)
		}
		all, args = append(all, args[:i]), args[i+1:]
	}
}

// run runs one go test and tells d of its events.
func run(ctx context.Context, d *digest, args []string) error {
	flags := []string{"test"}
	if len(args) > 1 && args[0] == "-C" { // go requires it to come first
		flags, args = append(flags, args[:2]...), args[2:]
	}
	flags = append(flags, "-json", "-p", strconv.Itoa(2*runtime.NumCPU()))
	cmd := exec.CommandContext(ctx, "go", append(flags, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = errors.Join(d.read(stdout), cmd.Wait())
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(d.failed) > 0 {
		return nil // the failures explain it better
	}
	return err
}

// event is an event of go test -json (cmd/test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// read reads the events of one go test. A line that is none is printed as it is.
func (d *digest) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if line != "" && json.Unmarshal([]byte(line), &e) != nil {
			e = event{Output: line}
		}
		d.event(e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
