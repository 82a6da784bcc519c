// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	main "github.com/slipway-dev/slipway/examples/nodeinit"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "go test -update rewrites %s", path)
}

// eachCommand calls f for each command that does something.
func eachCommand(c *cobra.Command, f func(*cobra.Command)) {
	if c.Runnable() {
		f(c)
	}
	for _, c := range c.Commands() {
		eachCommand(c, f)
	}
}

// ours reports whether a command belongs to this program and not to cobra.
func ours(c *cobra.Command) bool {
	return c.Name() != "completion" && c.Name() != "help" && (c.Parent() == nil || c.Parent().Name() != "completion")
}

func TestHelpOfEachCommand(t *testing.T) {
	eachCommand(main.Commands(), func(c *cobra.Command) {
		if !ours(c) {
			return
		}
		path := strings.Fields(c.CommandPath())
		o := here(t, nil, append(path[1:], "--help")...)
		require.Zero(t, o.code, o.stderr)
		require.Empty(t, o.stderr)
		for line := range strings.Lines(o.stdout) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
		}
		if slices.Contains([]string{"nodeinit", "apply", "uninstall", "forget"}, c.Name()) {
			golden(t, strings.Join(path, "-")+".txt", o.stdout)
		}
		require.Equal(t, o.stdout, here(t, nil, append([]string{"help"}, path[1:]...)...).stdout)

		lines := regexp.MustCompile(`(?m)^  (sudo )?`+c.CommandPath()+` ?.*$`).FindAllString("  "+strings.ReplaceAll(c.Example, "\n", "\n  "), -1)
		require.NotEmpty(t, lines, "an example of %s", c.CommandPath())
		for _, name := range regexp.MustCompile(`--([a-z0-9-]+)`).FindAllStringSubmatch("  "+strings.ReplaceAll(c.Example, "\n", "\n  "), -1) {
			require.True(t, c.Flag(name[1]) != nil || name[1] == "help", "an example of %s has --%s", c.CommandPath(), name[1])
		}
	})
}

func TestPLAN5_UsageErrorsAreAFewLines(t *testing.T) {
	var b strings.Builder
	for _, line := range []string{
		"aply", "apply --sourc node", "apply --lock-timout 1s", "apply --timeout=-5s", "check -o json", "apply --timeout soon", "apply --timeout 5", "apply now",
		"check --output jsno", "check --skip cgruop", "apply --source configmap:a/b", "apply --sysctl forward",
		"apply --config /nonexistent", "apply --cgroup-root run/cgroup", "cleanup --exception link", "forget", "run",
		"uninstall --all-agents --only cni", "mount-bpffs sys/fs/bpf", "build-config --dest=",
		"completion tcsh", "completion bsh", "release --adopt",
		"explain", "explain --source config-map:/x", "help aply", "help apply now", "apply --timeline plan.yaml",
	} {
		o := here(t, nil, strings.Fields(line)...)
		require.Equal(t, 64, o.code, "%s: %s", line, o.stderr)
		require.Empty(t, o.stdout)
		b.WriteString("$ nodeinit " + line + "\n" + o.stderr)
	}
	golden(t, "usage-errors.txt", b.String())
}
