// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command gotest runs go test and prints a summary for people: a line for each package,
// the output of failed tests, why tests were skipped, and where the time went. If there
// is nothing else to print, it reports the current activity every five seconds.
//
//	gotest -short ./... + -C bootstrap/prom ./...
//
// The arguments are those of go test; a plus begins another go test, in turn. Its exit
// status is 1 if a test failed, or nothing could be tested.
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
	"slices"
	"strings"
	"syscall"
	"time"
)

// silence is the time without output after which a line reports the current activity.
const silence = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := newDigest(os.Stdout, time.Now())
	for _, args := range groups(os.Args[1:]) {
		if err := run(ctx, d, args); err != nil {
			fmt.Fprintln(os.Stderr, "gotest:", err)
			d.broken = true
		}
	}
	if !d.end(time.Now()) {
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
	flags := []string{"test", "-json"}
	if len(args) > 1 && args[0] == "-C" { // go requires it to come first
		flags, args = []string{"test", "-C", args[1], "-json"}, args[2:]
	}
	cmd := exec.CommandContext(ctx, "go", append(flags, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	events, ended := make(chan event), make(chan error)
	cmd.Stderr = &lineWriter{events: events}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { ended <- errors.Join(decode(stdout, events), cmd.Wait()) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case e := <-events:
			d.event(e, time.Now())
		case now := <-tick.C:
			d.tick(now)
		case err := <-ended:
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && d.failures() > 0 {
				return nil // the failures explain it better
			}
			return err
		}
	}
}

// event is an event of go test -json (cmd/test2json).
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // the package being built
	Elapsed                       float64
}

func decode(r io.Reader, events chan<- event) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				e = event{Action: "output", Output: line}
			}
			events <- e
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// lineWriter passes on whole lines, as output that belongs to no package.
type lineWriter struct {
	events chan<- event
	rest   string
}

func (w *lineWriter) Write(p []byte) (int, error) {
	text := w.rest + string(p)
	for {
		line, rest, found := strings.Cut(text, "\n")
		if !found {
			w.rest = text
			return len(p), nil
		}
		w.events <- event{Output: line}
		text = rest
	}
}
