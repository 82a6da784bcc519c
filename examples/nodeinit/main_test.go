// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// binary is the program under test, built without cgo as for a container.
var binary string

func TestMain(m *testing.M) {
	if program := os.Getenv(confined); program != "" {
		panic(confine(program, os.Args[1:]))
	}
	dir, err := os.MkdirTemp("", "nodeinit-test-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "nodeinit")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(fmt.Errorf("build nodeinit: %w", err))
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// confined names a program that this one executes as a container runtime would.
const confined = "SLIPWAY_TEST_CONFINED"

// outcome is how one run of the program ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// finish runs a prepared command to its end.
func finish(t testing.TB, run func() error, stdout, stderr *bytes.Buffer) outcome {
	t.Helper()
	err := run()
	o := outcome{stdout: stdout.String(), stderr: stderr.String()}
	if exit, ok := err.(*exec.ExitError); ok {
		o.code = exit.ExitCode()
	} else {
		require.NoError(t, err)
	}
	return o
}

// here runs the program without a node, for errors before it acts.
func here(t testing.TB, env []string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return finish(t, cmd.Run, &stdout, &stderr)
}

// report is the output of --output json.
type report struct {
	Op         string    `json:"op"`
	Node       string    `json:"node"`
	Version    string    `json:"version"`
	Command    string    `json:"command"`
	Agent      string    `json:"agent"`
	Owner      string    `json:"owner"`
	Generation int       `json:"generation"`
	Start      time.Time `json:"start"`
	ElapsedMs  float64   `json:"elapsedMs"`
	Code       string    `json:"code"`
	Error      string    `json:"error"`
	Results    []struct {
		Step      string   `json:"step"`
		Status    string   `json:"status"`
		Reason    string   `json:"reason"`
		Changes   []string `json:"changes"`
		Advice    []string `json:"advice"`
		Diff      string   `json:"diff"`
		Code      string   `json:"code"`
		Error     string   `json:"error"`
		ElapsedMs float64  `json:"elapsedMs"`
	} `json:"results"`
}

func (o outcome) report(t testing.TB) report {
	t.Helper()
	var r report
	d := json.NewDecoder(bytes.NewBufferString(o.stdout))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r), o.stdout)
	require.False(t, d.More(), "one document: %s", o.stdout)
	return r
}

// statuses maps each step to its status.
func (r report) statuses() map[string]string {
	m := map[string]string{}
	for _, result := range r.Results {
		m[result.Step] = result.Status
	}
	return m
}

// What testdata/usage-errors.txt cannot have: files, variables and bytes.
func TestPLAN5_UsageErrorsExit64(t *testing.T) {
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	for name, tc := range map[string]struct {
		env   []string
		args  []string
		says  string
		meant string
	}{
		"misspelt flag in file":  {args: []string{"apply", "--config", file("bpf-rot: /run/bpf\n")}, says: `unknown flag "bpf-rot"`, meant: "bpf-root"},
		"unknown flag in file":   {args: []string{"apply", "--config", file("no-such-flag: 1\n")}, says: `unknown flag "no-such-flag"`},
		"a list as the file":     {args: []string{"check", "--config", file("- dest\n")}, says: "line 1: must be a map of flags to values"},
		"a flag twice":           {args: []string{"check", "--config", file("dest: /a\ndest: /b\n")}, says: `line 2: flag "dest" is given twice`},
		"null in the file":       {args: []string{"check", "--config", file("dest:\n")}, says: "line 1: dest: must be a value"},
		"variable":               {env: []string{"SLIPWAY_LOCK_TIMEOUT=soon"}, args: []string{"apply"}, says: "SLIPWAY_LOCK_TIMEOUT"},
		"variable of installers": {env: []string{"OVERWRITE_CILIUM=perhaps"}, args: []string{"install-cni"}, says: "OVERWRITE_CILIUM"},
		"misspelt template":      {args: []string{"apply", "--cni-template", "portmpa"}, says: "must be one of none, portmap, flannel, aws-cni", meant: "portmap"},
		"unknown step":           {args: []string{"check", "--skip", "bpf"}, says: `--skip "bpf": must be one of config, cleanup, host-paths, cgroup, sysctl, bpffs, cni, modules, preflight`, meant: "bpffs"},
		"only no step":           {args: []string{"check", "--only", ""}, says: "--only is given and names nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			o := here(t, tc.env, tc.args...)
			require.Equal(t, 64, o.code, o.stderr)
			require.Empty(t, o.stdout)
			lines := strings.Split(strings.TrimSuffix(o.stderr, "\n"), "\n")
			require.Contains(t, lines[0], tc.says)
			require.Regexp(t, `^nodeinit: see nodeinit.* --help$`, lines[len(lines)-1])
			require.Len(t, lines, 2, "a pod's status shows all of it")
			require.Equal(t, tc.meant != "", strings.HasSuffix(lines[0], ": did you mean "+tc.meant+"?"), lines[0])
		})
	}
}

func TestVersionSaysWhatWasBuiltAndWithWhat(t *testing.T) {
	o := here(t, nil, "--version")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, o, here(t, nil, "version"))
	require.Equal(t, 64, here(t, nil, "-v").code)
	require.Regexp(t, `^nodeinit version (\(devel\)|v\d+\.\d+\.\d+\S*), go1\.\S+ linux/\S+\n$`, o.stdout)
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		o := here(t, []string{"SLIPWAY_LOG_LEVEL=none of them"}, "completion", shell)
		require.Zero(t, o.code, o.stderr)
		require.Contains(t, o.stdout, "nodeinit", shell)
		require.Contains(t, o.stdout, "__complete", shell)
	}
	for line, want := range map[string]string{
		"un":              "uninstall\t",
		"apply --cni-tem": "--cni-template\t",
		"apply --skip cg": "cgroup\n",
		"check --output ": "json\n",
		"forg":            "forget\t",
	} {
		o := here(t, nil, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		require.Zero(t, o.code, o.stderr)
		require.Contains(t, o.stdout, want, line)
	}
}

func TestTheBinaryIsSmall(t *testing.T) {
	info, err := os.Stat(binary)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(141<<17), "bytes, built without symbols, of which it has 17.6 MiB: one use of text/template keeps 3 MiB of what nobody calls")
}
