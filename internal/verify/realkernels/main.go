// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command realkernels runs the demo, the command's life and the packages' tests on
// other kernels, in virtual machines without KVM.
//
//	go run ./internal/verify/realkernels                          # all, hours
//	go run ./internal/verify/realkernels -short                   # one old kernel, minutes
//	go run ./internal/verify/realkernels -short -kernels 6.12-arm64
//	go run ./internal/verify/realkernels -short -install          # only what that needs
//	go run ./internal/verify/realkernels -kernels 6.1,6.12 -run hybrid
//	go run ./internal/verify/realkernels -kernels 6.1 -packages './bpffs ./cgroup'
//
// A kernel is the newest of its series in Debian; "newest" is the newest of all. A
// virtual machine has one of these, a Debian with the tools that the tests use, and
// the tests' binaries; it has one processor, emulated. It neither sees nor
// changes anything of the machine that it runs on.
//
// Kernels, the Debian and the emulator are installed from the machine's own Debian
// mirror the first time, into slipway/kernels of the user's cache directory (3 GB);
// without that directory the next run installs the newest again. It also keeps the output
// of each virtual machine there, in logs, from which -table makes the table in
// EVIDENCE.md; for a failed one it prints the relevant part. It needs root, to install a
// Debian, and the packages e2fsprogs, kmod, mmdebstrap, xz-utils and zstd.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// series are the kernels of a full run. The last is of another architecture than the
// machine's.
var series = []string{"5.10", "6.1", "6.12", "6.18", newest, "6.12-" + arm64}

const shortSeries = "5.10"

var everything = []string{"./..."}

// order holds the command line's options.
type order struct {
	kernels, packages, only []string // only: the names of virtual machines; nil means all
	short, install          bool
	atOnce                  int // virtual machines, each of which takes a processor and 2.5 GB
}

func main() {
	kernels := flag.String("kernels", "", "series of kernels, of which the newest versions are used; if empty, "+strings.Join(series, ",")+" or, with -short, "+shortSeries)
	short := flag.Bool("short", false, "only the demo, the command's life, and the tests of the packages whose calls differ by kernel")
	only := flag.String("run", "", "only the virtual machines of these names: "+strings.Join(bootNames(boots), ",")+"; with -short: "+strings.Join(bootNames(shortBoots), ","))
	packages := flag.String("packages", strings.Join(everything, " "), "if given, only the tests of these packages")
	install := flag.Bool("install", false, "only install what is missing")
	table := flag.String("table", "", "only write the table of earlier runs into this file, between its marks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := order{kernels: series, packages: strings.Fields(*packages), short: *short, install: *install, atOnce: 1}
	if *short {
		o.kernels = []string{shortSeries}
	}
	if *kernels != "" {
		o.kernels = strings.Split(*kernels, ",")
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	if err := run(ctx, o, *table); err != nil {
		fmt.Fprintln(os.Stderr, "realkernels:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o order, table string) error {
	dir, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	cache := filepath.Join(dir, "slipway", group)
	logs := filepath.Join(cache, "logs")
	if table != "" {
		return writeTable(table, logs)
	}
	wanted := boots
	if !slices.Equal(o.packages, everything) {
		wanted = []boot{{name: "some", cgroup: "unified", parts: []string{tests}, limit: time.Hour}}
	}
	if o.short {
		wanted, o.packages, o.atOnce = shortBoots, ofTheKernel, len(shortBoots)
	}
	if o.only != nil {
		wanted = slices.DeleteFunc(slices.Clone(wanted), func(b boot) bool { return !slices.Contains(o.only, b.name) })
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	m := &machines{cache: cache, logs: logs}
	if err := m.install(ctx, o.kernels); err != nil || o.install {
		return err
	}
	defer m.close()
	if !slices.ContainsFunc(wanted, func(b boot) bool { return slices.Contains(b.parts, tests) }) {
		o.packages = nil
	}
	if err := m.build(ctx, o.kernels, o.packages); err != nil {
		return err
	}
	return m.runAll(ctx, o, wanted)
}

// runAll runs the virtual machines, a number at a time.
func (m *machines) runAll(ctx context.Context, o order, wanted []boot) error {
	var running sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	free := make(chan struct{}, o.atOnce)
	for _, kernel := range o.kernels {
		for _, b := range wanted {
			free <- struct{}{}
			running.Go(func() {
				defer func() { <-free }()
				err := m.shown(ctx, kernel, b)
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			})
		}
	}
	running.Wait()
	return errors.Join(errs...)
}

// shown runs a virtual machine, and prints its result.
func (m *machines) shown(ctx context.Context, kernel string, b boot) error {
	fmt.Printf("starting Linux %s, %s\n", kernel, b.name)
	r, err := m.boot(ctx, kernel, b)
	if err != nil {
		return fmt.Errorf("%s %s: %w", kernel, b.name, err)
	}
	fmt.Printf("== Linux %s, %s\n%s", r.kernel, b.name, r.text(b))
	fmt.Fprint(os.Stderr, r.why(b))
	if !r.good(b) {
		return fmt.Errorf("failed: %s %s (see %s)", kernel, b.name, m.logFile(kernel, b))
	}
	return nil
}
