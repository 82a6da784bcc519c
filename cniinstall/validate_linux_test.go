// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/cniinstall"
)

// saying is a plugin that runs a command, then answers VERSION.
func saying(command string) string {
	return strings.Replace(script("0.3.1", "1.0.0"), "\n", "\n"+command+"\n", 1)
}

func validate(t *testing.T, ctx context.Context, plugin string) error {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "cilium-cni"), plugin, 0o755)
	return cniinstall.Validate(ctx, []byte(list(agentPlugin)), dir)
}

func TestCNI2_Validate(t *testing.T) {
	require.NoError(t, validate(t, t.Context(), script("0.3.1", "1.0.0")))
	dir := t.TempDir()
	write(t, filepath.Join(dir, "p"), script("0.1.0"), 0o755)
	single := []byte(`{"name":"n","type":"p"}`)
	require.NoError(t, cniinstall.Validate(t.Context(), single, t.TempDir(), dir), "no cniVersion means 0.1.0")
	require.ErrorIs(t, cniinstall.Validate(t.Context(), single, t.TempDir()), cniinstall.ErrPluginMissing)
	require.ErrorContains(t, cniinstall.Validate(t.Context(), []byte(`{"name":"n","type":"no-such-cni"}`)), "no-such-cni is not in /opt/cni/bin")
	err := cniinstall.Validate(t.Context(), []byte(`{"cniVersion":"1.0.0","name":"n","type":"p"}`), dir)
	require.EqualError(t, err, "invalid CNI configuration: plugin p does not speak cniVersion 1.0.0, only 0.1.0")
	write(t, filepath.Join(dir, "p"), "#!/bin/sh\necho '{\"msg\":\"unknown CNI_COMMAND: VERSION\"}'\nexit 1\n", 0o755)
	require.NoError(t, cniinstall.Validate(t.Context(), single, dir), "one older than the VERSION command counts as 0.1.0, as in libcni")
}

// A plugin's environment has only CNI's variables, and its first argument is its own name.
func TestCNI2_EnvironmentOfThePlugin(t *testing.T) {
	t.Setenv("SLIPWAY_TEST_SECRET", "secret")
	out := filepath.Join(t.TempDir(), "env")
	n := newNode(t)
	n.source("cilium-cni", saying("cat /proc/$$/environ | tr '\\0' '\\n' >"+out+"; pwd >>"+out))
	require.NoError(t, n.install().Apply(t.Context()))
	raw, err := os.ReadFile(out)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	require.Equal(t, n.bin, lines[len(lines)-1], "where it runs")
	require.Contains(t, lines, "CNI_COMMAND=VERSION")
	for _, line := range lines[:len(lines)-1] {
		require.Regexp(t, `^CNI_[A-Z]+=`, line)
	}
}

// A plugin that hangs is killed with its children when the context ends, and after 5 seconds,
// which only a long run waits for.
func TestCNI2_PluginThatHangs(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	hang := saying("sleep 1000 & echo $! >" + pids + ".new; mv " + pids + ".new " + pids + "; wait")
	killed := func() {
		t.Helper()
		require.Eventually(t, func() bool { return gone(strings.TrimSpace(read(t, pids))) }, slow, time.Millisecond, "its child is gone too")
		require.NoError(t, os.Remove(pids))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(pids); err == nil {
				cancel()
			}
			runtime.Gosched()
		}
	}()
	require.ErrorIs(t, validate(t, ctx, hang), context.Canceled)
	killed()
	if !testing.Short() {
		err := validate(t, t.Context(), hang)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context has time left")
		require.ErrorContains(t, err, "run CNI plugin cilium-cni for its version: did not answer within 5s")
		killed()
	}
}

// gone reports whether the process does not exist or is a zombie.
func gone(pid string) bool {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || strings.Contains(string(raw), ") Z ")
}

func TestCNI2_PluginThatFails(t *testing.T) {
	tests := map[string]struct{ plugin, want string }{
		"exit status": {"#!/bin/sh\nexit 7\n", "exit status 7"},
		"stderr":      {"#!/bin/sh\necho no library >&2\nexit 127\n", `exit status 127: "no library"`},
		"protocol":    {"#!/bin/sh\necho '{\"code\":4,\"msg\":\"boom\",\"details\":\"bad\"}'\nexit 1\n", "boom; bad"},
		"no JSON":     {"#!/bin/sh\necho hello\n", "decoding version info"},
		"interpreter": {"#!/no/such/sh -e\nexit 0\n", "no such file or directory (this host does not have its interpreter, or the loader that it is linked for)"},
		"no program":  {"\x7fELF, but not really", "exec format error"},
		"too much":    {"#!/bin/sh\nhead -c 2000000 /dev/zero | tr '\\0' ' '\n" + script("0.3.1", "1.0.0"), "unexpected end of JSON input"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := validate(t, t.Context(), tt.plugin)
			require.ErrorContains(t, err, "run CNI plugin cilium-cni for its version: ")
			require.ErrorContains(t, err, tt.want)
			require.NotErrorIs(t, err, cniinstall.ErrPluginMissing)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, validate(t, ctx, script("0.3.1", "1.0.0")), context.Canceled)
}

// Another installer has the plugin open for writing, which will end.
func TestCNI2_PluginThatIsBeingWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cilium-cni")
	write(t, path, script("0.3.1", "1.0.0"), 0o755)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	err = cniinstall.Validate(t.Context(), []byte(list(agentPlugin)), dir)
	f.Close()
	require.ErrorIs(t, err, cniinstall.ErrPluginMissing)
	require.ErrorIs(t, err, unix.ETXTBSY)
	require.NoError(t, cniinstall.Validate(t.Context(), []byte(list(agentPlugin)), dir))
}

// Only the plugins that an installation brings, and the agent's own, must answer for their
// versions: another's that fails, hangs or prints something else is named by the run that asks
// it, and holds nothing up. One that answers and does not speak the version is an error.
func TestCNI12_APluginOfOthersThatDoesNotAnswerIsAdvice(t *testing.T) {
	const fails, chatty = "#!/bin/sh\necho no library >&2\nexit 7\n", "#!/bin/sh\necho hello\n"
	for name, tt := range map[string]struct {
		theirs, ours string
		alter        func(i *cniinstall.Install)
		advice, fail string
	}{
		"theirs fails":              {theirs: fails, advice: `portmap speaks cniVersion 1.0.0, since it does not answer: exit status 7: "no library"`},
		"theirs prints anything":    {theirs: chatty, advice: "portmap speaks cniVersion 1.0.0, since it does not answer: decoding version info"},
		"theirs has no interpreter": {theirs: "#!/no/such/sh\n", advice: "since it does not answer: "},
		"theirs speaks another":     {theirs: script("0.1.0"), fail: "plugin portmap does not speak cniVersion 1.0.0"},
		"ours fails":                {theirs: script("1.0.0"), ours: fails, fail: "run CNI plugin cilium-cni for its version: exit status 7"},
		"ours fails, installed before": {theirs: script("1.0.0"), ours: fails, fail: "run CNI plugin cilium-cni for its version",
			alter: func(i *cniinstall.Install) { i.Replace = []string{} }},
		"ours fails, brought by another step": {theirs: script("1.0.0"), ours: fails, fail: "run CNI plugin cilium-cni for its version",
			alter: func(i *cniinstall.Install) { i.Plugins = nil }},
		"the agent's in a chain fails": {theirs: script("1.0.0"), ours: fails, fail: "run CNI plugin cilium-cni for its version",
			alter: func(i *cniinstall.Install) {
				i.Plugins, i.Config = nil, cniinstall.Chained{Network: "theirs", Plugin: []byte(`{"type":"cilium-cni"}`)}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.ownLoopback()
			write(t, n.plugin("portmap"), tt.theirs, 0o755)
			write(t, n.other("10-theirs.conflist"), `{"cniVersion":"1.0.0","name":"theirs","plugins":[{"type":"portmap"}]}`, 0o644)
			if tt.ours != "" {
				n.source("cilium-cni", tt.ours)
				write(t, n.plugin("cilium-cni"), tt.ours, 0o755)
			}
			i := n.install()
			i.Config = agentOf(cniinstall.Agent{Mode: "portmap"})
			if tt.alter != nil {
				tt.alter(&i.Install)
			}
			plan := n.planOf(cniinstall.Uninstall{}, bootstrap.Step{Name: "cni", Wants: i.Install})
			checked, errCheck := plan.Check(t.Context())
			applied, errApply := plan.Apply(t.Context())
			if tt.fail != "" {
				require.ErrorContains(t, errCheck, tt.fail)
				require.ErrorContains(t, errApply, tt.fail)
				require.NoFileExists(t, n.confFile())
				return
			}
			require.NoError(t, errCheck)
			require.NoError(t, errApply)
			require.FileExists(t, n.confFile())
			require.Contains(t, strings.Join(adviceOf(checked), "\n"), tt.advice)
			require.Contains(t, strings.Join(adviceOf(applied), "\n"), tt.advice)
			again, err := plan.Apply(t.Context())
			require.NoError(t, err)
			require.NotContains(t, strings.Join(adviceOf(again), "\n"), "does not answer", "nobody asked it")
		})
	}
}
