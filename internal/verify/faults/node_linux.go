// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/process"
)

// runTimeout is far longer than any of the commands takes, also when traced.
const runTimeout = time.Minute

// node is a throw-away node with the inputs that an administrator would give to nodeinit.
type node struct {
	*testns.Node
	binary string
	work   string // at the same path on the node
	disk   bool   // some directories are on a disk: see mountDisk
}

// stateDir is where nodeinit records by default.
const stateDir = "/var/lib/slipway"

const ledgerFile = stateDir + "/ledger"

// reportFile is the report of the last run of nodeinit's default agent, which contains times.
const reportFile = stateDir + "/report.cilium"

// newNode starts a node whose inputs are in work. binary is nodeinit.
func newNode(ctx context.Context, binary, work string) (*node, error) {
	if err := writeInputs(work); err != nil {
		return nil, err
	}
	t, err := testns.StartNode(ctx, testns.NodeOptions{})
	if err != nil {
		return nil, err
	}
	return &node{Node: t, binary: binary, work: work}, nil
}

const plugin = `#!/bin/sh
echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","1.0.0"]}'
`

// writeInputs writes two versions of the inputs: v1 and v2.
func writeInputs(work string) error {
	var errs []error
	for _, version := range []string{"v1", "v2"} {
		dir := filepath.Join(work, version)
		errs = append(errs, os.MkdirAll(filepath.Join(dir, "plugins"), 0o755))
		for _, name := range []string{"test-cni", "loopback", version} {
			errs = append(errs, os.WriteFile(filepath.Join(dir, "plugins", name), []byte(plugin+"# "+version+"\n"), 0o755))
		}
		conf := `{"cniVersion":"1.0.0","name":"` + version + `","plugins":[{"type":"test-cni"}]}` + "\n"
		config := "cluster-name: test\nversion: " + version + "\n" + version + ": only here\n"
		errs = append(errs,
			os.WriteFile(filepath.Join(dir, "test.conflist"), []byte(conf), 0o644),
			os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o644))
	}
	return errors.Join(errs...)
}

// outcome is how one run of a program ended.
type outcome struct {
	code   int // -1: by a signal
	output string
	hung   bool
}

func (o outcome) String() string {
	if o.hung {
		return "it hangs: " + o.output
	}
	return fmt.Sprintf("exit status %d: %s", o.code, strings.TrimSpace(o.output))
}

// run runs one of the machine's programs on the node.
func (n *node) run(ctx context.Context, name string, args ...string) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	// With one processor, all other calls are made by one other thread, and count too.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1"}
	cmd.WaitDelay = time.Second // for processes that a killed strace leaves running
	output, err := process.Output(cmd, n.StartCommand)
	if cmd.ProcessState == nil { // it was not started
		return outcome{}, err
	}
	return outcome{cmd.ProcessState.ExitCode(), output, errors.Is(ctx.Err(), context.DeadlineExceeded)}, nil
}

// command runs a command of nodeinit, or a script: sh TEXT.
func (n *node) command(ctx context.Context, args ...string) (outcome, error) {
	if args[0] == "sh" {
		return n.run(ctx, "sh", "-euc", args[1])
	}
	return n.run(ctx, n.binary, args...)
}

// clean runs commands undisturbed, so that they must succeed.
func (n *node) clean(ctx context.Context, commands ...[]string) error {
	for _, args := range commands {
		o, err := n.command(ctx, args...)
		if err != nil {
			return err
		}
		if o.code != 0 || o.hung {
			return fmt.Errorf("%s, undisturbed: %w", args[0], errors.New(o.String()))
		}
	}
	return nil
}

// state describes everything that nodeinit may change on a node.
func (n *node) state(ctx context.Context) (snapshot.Snapshot, error) {
	seen := snapshot.Snapshot{}
	err := n.Do(ctx, func(context.Context) error {
		if n.disk {
			return errors.Join(seen.Files(diskDirs...), wellFormed())
		}
		directories := append([]string{"/etc", "/opt", "/run", "/var", "/run/agent-config"}, diskDirs...)
		return errors.Join(seen.Files(directories...), seen.Cgroups("/sys/fs/cgroup"), seen.Mounts(), seen.Links(), seen.Values("net/ipv4/conf"), wellFormed())
	})
	maps.DeleteFunc(seen, func(object, _ string) bool { // files that stay, and mount(8)'s own
		return object == "file /run/slipway.lock" || object == "file "+reportFile || strings.HasPrefix(object, "file /run/mount")
	})
	seen.DropSources()
	return normal(seen), err
}

// normal replaces random parts and times, but keeps the number of objects of each kind.
func normal(seen snapshot.Snapshot) snapshot.Snapshot {
	s, names := snapshot.Snapshot{}, map[string][]string{}
	number := func(name string) string {
		kind := strings.TrimRight(name, "_.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
		if !slices.Contains(names[kind], name) {
			names[kind] = append(names[kind], name)
		}
		return fmt.Sprintf("%sDRAWN-%d", kind, slices.Index(names[kind], name)+1)
	}
	for _, object := range slices.Sorted(maps.Keys(seen)) {
		text := seen[object]
		if strings.HasPrefix(object, "file "+stateDir+"/") {
			text, _, _ = strings.Cut(text, " ") // it contains times too
		}
		s[drawn.ReplaceAllStringFunc(object, number)] = drawn.ReplaceAllStringFunc(text, number)
	}
	return s
}

// drawn matches random names of a data directory.
var drawn = regexp.MustCompile(`\.\.\d{4}(_\d\d){5}\.\d+`)

// wellFormed returns an error if a JSON file is invalid, or the ledger cannot be read.
func wellFormed() error {
	files, _ := filepath.Glob("/etc/cni/net.d/*")
	var errs []error
	for _, path := range files {
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || durable.IsTemporary(filepath.Base(path)) {
			continue // it was put in our way, or is not in place yet
		}
		raw, err := os.ReadFile(path)
		if err == nil && !json.Valid(raw) {
			err = fmt.Errorf("%s is torn: %w", path, errors.New(string(raw)))
		}
		errs = append(errs, err)
	}
	if info, err := os.Lstat(ledgerFile); err != nil || !info.Mode().IsRegular() || info.Size() == int64(len("{}\n")) {
		return errors.Join(errs...) // it does not exist, or was put in our way
	}
	return errors.Join(append(errs, readable(context.Background()))...)
}

// readable returns an error if a part of the ledger is damaged.
func readable(ctx context.Context) error {
	b, err := (&ledger.Ledger{Dir: stateDir, Agent: "cilium", NoOwner: true}).Open(ctx)
	if err != nil {
		return nil // something was put in its way
	}
	defer b.Close()
	switch status, err := b.Status(ctx); {
	case errors.Is(err, ledger.ErrUnreadable):
		return err
	case len(status.Damaged) > 0:
		return fmt.Errorf("damaged records: %q", status.Damaged)
	}
	return nil
}
