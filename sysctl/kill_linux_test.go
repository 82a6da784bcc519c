// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/sysctl"
)

// nodeEnv makes the test binary apply and revert forever on the node that it names.
const nodeEnv = "SLIPWAY_TEST_SYSCTL_NODE"

// killed is an action on a node whose kernel is a directory.
func killed(node string) recordedFile {
	j, err := (&journal.Node{Dir: node + "/slipway", Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
	if err != nil {
		panic(err)
	}
	return recordedFile{sysctl.DropIn{
		Dir: node + "/etc/sysctl.d", Name: "90-agent.conf", Kernel: sysctl.Kernel{Root: node + "/proc/sys"}, Settings: []sysctl.Setting{{Key: "kernel.a", Value: "1"}, {Key: "kernel.b", Value: "2"}},
	}, j.Step("test")}
}

func TestMain(m *testing.M) {
	node := os.Getenv(nodeEnv)
	if node == "" {
		os.Exit(m.Run())
	}
	fmt.Println("ready")
	for range 2000 { // bounded, in case the test dies first
		if err := errors.Join(killed(node).Apply(context.Background()), killed(node).Revert(context.Background())); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

func filesOf(t *testing.T, dir string) snapshot.Snapshot {
	t.Helper()
	s := snapshot.Snapshot{}
	require.NoError(t, s.Files(dir))
	return s
}

// Wherever a process is killed, the next Apply reaches the same result, and the
// next Revert leaves nothing behind.
func TestPLAN3_KilledAnywhere(t *testing.T) {
	for i := range 50 {
		node := t.TempDir()
		for _, key := range []string{"a", "b"} {
			file := filepath.Join(node, "proc/sys/kernel", key)
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte("0\n"), 0o644))
		}
		before := filesOf(t, node)
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), nodeEnv+"="+node)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
		<-time.After(time.Duration(i) * 503 * time.Microsecond)
		require.NoError(t, c.Process.Kill())
		require.ErrorContains(t, c.Wait(), "killed")

		d := killed(node)
		if i%2 == 0 {
			require.NoError(t, d.Apply(t.Context()))
			changes, err := d.Check(t.Context())
			require.NoError(t, err)
			require.Empty(t, changes)
		}
		require.NoError(t, d.Revert(t.Context()))
		require.Empty(t, before.Diff(filesOf(t, node)), "killed after %d steps of 503µs", i)
	}
}
