// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command fleet reports the state of the nodes of a cluster: which failed, with which
// cause and remedy, from the reports of `nodeinit --report-node`. Under the name
// kubectl-slipway in a directory of PATH it is kubectl's plugin slipway:
//
//	kubectl slipway                    # all nodes, by the code of the failure
//	kubectl slipway --why worker-17    # one node: failure, cause, remedy
//
// A node is ready if all reports on it say so and its kubelet does; and, with --daemonset, if
// the newest pod of that DaemonSet there has reported.
//
// It reads the nodes' metadata, at most 50 at a time, and the states in the table that kubectl
// prints, and needs list on nodes; for --why, get; for --daemonset, get on that one, and list
// on pods in its namespace. What one node may claim is bounded, and one with too much metadata is named as garbled.
//
// It exits with 0 when all is well, 2 when a node failed, has drifted, or does not
// report, 1 when the cluster could not be asked, 64 on a usage error. It also exits with 2
// if no node has a report, even after an uninstall of all: nodeinit may lack the right to
// report. A signal ends it at once, with 128 and the signal's number.
//
// A node that --why names and that does not exist is 1. A selector that no node matches
// is 0, as in kubectl, with a line on standard error.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/configresolve"
)

// The exit statuses, beside 0: all is well.
const (
	exitError = 1  // the cluster could not be asked
	exitWrong = 2  // not all is well
	exitUsage = 64 // EX_USAGE of sysexits(3)
)

func main() {
	endWhenTold()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// endWhenTold ends the process, which has nothing to finish, with the first signal: also
// while its output is not read, and as the first process of a container.
func endWhenTold() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM) // before anything that may take time
	go func() {
		if number, ok := (<-signals).(syscall.Signal); ok {
			os.Exit(128 + int(number))
		}
	}()
}

// options are the values of the flags.
type options struct {
	kubeconfig, selector, agent, daemonSet, why, output string
	timeout                                             time.Duration
}

func parse(args []string, stdout io.Writer) (o options, err error) {
	f := pflag.NewFlagSet("fleet", pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() { fmt.Fprintf(stdout, "Usage:\n  fleet [flags]\n\nFlags:\n%s", f.FlagUsagesWrapped(width)) }
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: $KUBECONFIG, or ~/.kube/config)")
	f.StringVarP(&o.selector, "selector", "l", "", "only nodes with these `labels`, as kubectl takes them")
	f.StringVar(&o.agent, "agent", "", "only the reports of this `agent` (default: all agents)")
	f.StringVar(&o.daemonSet, "daemonset", "", "`namespace/name` of the DaemonSet that reports: a node is outdated if its newest pod there has not; empty: it is not asked")
	f.StringVar(&o.why, "why", "", "explain the failures of this `node`: cause and remedy")
	f.StringVar(&o.output, "output", "text", "text, or json: one document")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "give up after this `duration`")
	if err := f.Parse(args); err != nil {
		return o, fmt.Errorf("%w%s", err, meant(f, args))
	}
	_, invalid := labels.Parse(o.selector)
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.output != "text" && o.output != "json":
		return o, fmt.Errorf("--output %q: want text or json", o.output)
	case o.timeout <= 0:
		return o, errors.New("--timeout: want a time above 0 with its unit, such as 30s or 2m")
	case o.daemonSet != "" && strings.Count(o.daemonSet, "/") != 1:
		return o, fmt.Errorf("--daemonset %q: want namespace/name", o.daemonSet)
	case invalid != nil:
		return o, fmt.Errorf("--selector: %w", invalid)
	}
	if o.kubeconfig == "" {
		o.kubeconfig = defaultKubeconfig()
	}
	return o, nil
}

// meant ends the error of a flag that does not exist with one that does, if that is similar.
func meant(f *pflag.FlagSet, args []string) string {
	var known []string
	f.VisitAll(func(flag *pflag.Flag) { known = append(known, flag.Name) })
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if nearest := configresolve.Nearest(name, known); strings.HasPrefix(arg, "-") && f.Lookup(name) == nil && nearest != "" {
			return ": did you mean --" + nearest + "?"
		}
	}
	return ""
}

// defaultKubeconfig returns the file that kubectl would read first, or "" if there is none,
// as in a pod.
func defaultKubeconfig() string {
	candidates := filepath.SplitList(os.Getenv("KUBECONFIG"))
	if home, err := os.UserHomeDir(); err == nil {
		candidates = append(candidates, filepath.Join(home, ".kube", "config"))
	}
	for _, path := range candidates {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func run(args []string, stdout, stderr io.Writer) int {
	stdout, stderr = bootstrap.Printable(stdout), bootstrap.Printable(stderr)
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "fleet: %s\nfleet: see --help\n", bootstrap.OneLine(err.Error()))
		return exitUsage
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), o.timeout, fmt.Errorf("--timeout of %s is over", o.timeout))
	defer cancel()
	well, err := o.show(ctx, stdout, stderr)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "fleet: %s\n", bootstrap.OneLine(err.Error()))
		return exitError
	case !well:
		return exitWrong
	}
	return 0
}

// show prints the requested output, and reports whether all is well.
func (o options) show(ctx context.Context, w, stderr io.Writer) (well bool, err error) {
	c, err := connect(o.kubeconfig)
	if err != nil {
		return false, err
	}
	if o.why != "" {
		n, err := c.readNode(ctx, o.why, o.agent, o.daemonSet)
		if err != nil {
			return false, err
		}
		return n.well(), print(w, o.output, n)
	}
	f, err := c.readFleet(ctx, o.selector, o.agent, o.daemonSet)
	if err != nil {
		return false, err
	}
	if f.Nodes == 0 && o.selector != "" {
		fmt.Fprintf(stderr, "fleet: no node matches --selector %q\n", o.selector)
	}
	return f.well(), print(w, o.output, f)
}

// print prints for people, or one document.
func print(w io.Writer, output string, what interface{ text(time.Time) string }) error {
	if output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(what)
	}
	_, err := io.WriteString(w, what.text(time.Now()))
	return err
}
