// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

func TestCmdOutputs(t *testing.T) {
	node := bootstraptest.NewNode(t)
	out, err := node.Command("sh", "-c", "echo out; echo err >&2; exit 3").Output()
	exit := new(exec.ExitError)
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.ExitCode())
	require.Equal(t, "err\n", string(exit.Stderr))
	require.Equal(t, "out\n", string(out))

	out, err = node.Command("sh", "-c", "echo out; echo err >&2").CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, "out\nerr\n", string(out))

	cmd := node.Command("cat")
	require.ErrorContains(t, cmd.Wait(), "not started")
	cmd.Stdout = os.Stdout
	_, err = cmd.Output()
	require.ErrorContains(t, err, "already set")
	_, err = cmd.CombinedOutput()
	require.ErrorContains(t, err, "already set")
	require.Error(t, node.Command("/does/not/exist").Run())
}

func TestNodeEndsWhatStillRuns(t *testing.T) {
	var cmd *bootstraptest.Cmd
	t.Run("test", func(t *testing.T) {
		node := bootstraptest.NewNode(t)
		cmd = node.Command("sleep", "1000")
		require.NoError(t, cmd.Start())
	})
	if cmd == nil {
		return // skipped
	}
	require.ErrorContains(t, cmd.Wait(), "signal: killed")
}

func TestKillKillsTheProgramItself(t *testing.T) {
	node := bootstraptest.NewNode(t)
	cmd := node.Command("sh", "-c", "echo $$; exec sleep 1000")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	buf := make([]byte, 16)
	_, err = out.Read(buf)
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	require.ErrorContains(t, cmd.Wait(), "signal: killed")
	list, err := node.Command("sh", "-c", "grep -l sleep /proc/[0-9]*/comm || true").Output()
	require.NoError(t, err)
	require.Empty(t, string(list))
}
