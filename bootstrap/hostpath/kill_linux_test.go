// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// nodeEnv makes the test binary apply and revert forever on the node that it names.
const nodeEnv = "SLIPWAY_TEST_HOSTPATH_NODE"

func killed(node string) recorded {
	j, err := (&journal.Node{Dir: node + "/slipway", Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
	if err != nil {
		panic(err)
	}
	return recorded{hostpath.Paths{List: []hostpath.Path{
		{Path: node + "/a/b/c", Type: hostpath.DirectoryOrCreate},
		{Path: node + "/a/file", Type: hostpath.FileOrCreate},
		{Path: node + "/d", Type: hostpath.DirectoryOrCreate},
	}}, j.Step("test")}
}

// killedContents writes one file that existed before and one that did not.
func killedContents(node string) (all []written) {
	j := killed(node).Journal
	for _, path := range []string{"/conf/theirs", "/conf/agent/ours"} {
		all = append(all, written{hostpath.Content{Path: node + path, Bytes: []byte("ours"), Parents: true, Mode: 0o644}, j})
	}
	return all
}

func applyContents(ctx context.Context, node string) error {
	for _, c := range killedContents(node) {
		if err := c.Apply(ctx); err != nil {
			return err
		}
	}
	return nil
}

func TestMain(m *testing.M) {
	node := os.Getenv(nodeEnv)
	if node == "" {
		os.Exit(m.Run())
	}
	fmt.Println("ready")
	for range 2000 { // bounded, in case the test dies first
		for _, f := range []func() error{
			func() error { return killed(node).Apply(context.Background()) },
			func() error { return applyContents(context.Background(), node) },
			func() error { return killed(node).Revert(context.Background()) },
		} {
			if err := f(); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
	}
}

// Wherever a process is killed, the next Apply makes the missing paths and the next
// Revert leaves nothing behind.
func TestPLAN3_KilledAnywhere(t *testing.T) {
	for i := range 50 {
		node := t.TempDir()
		require.NoError(t, os.Mkdir(node+"/conf", 0o755))
		write(t, node+"/conf/theirs")
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), nodeEnv+"="+node)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
		<-time.After(time.Duration(i) * 101 * time.Microsecond)
		require.NoError(t, c.Process.Kill())
		require.ErrorContains(t, c.Wait(), "killed")

		a := killed(node)
		if i%2 == 0 {
			require.NoError(t, a.Apply(t.Context()))
			changes, err := a.Check(t.Context())
			require.NoError(t, err)
			require.Empty(t, changes)
			require.NoError(t, applyContents(t.Context(), node))
			for _, c := range killedContents(node) {
				changes, err := c.Check(t.Context())
				require.NoError(t, err)
				require.Empty(t, changes)
			}
		}
		require.NoError(t, a.Revert(t.Context()))
		require.Equal(t, []string{node, node + "/conf", node + "/conf/theirs"}, names(t, node), "killed after %d steps of 101µs", i)
		now, err := journal.Snapshot(t.Context(), node+"/conf/theirs")
		require.NoError(t, err)
		require.True(t, now.Same(journal.FileState(nil, 0o600)))
	}
}
