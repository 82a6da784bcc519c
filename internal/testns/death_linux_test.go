// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
)

const helperEnv = "SLIPWAY_TESTNS_TEST_HELPER"

// TestMain plays the program that starts a node and dies.
func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) == "" {
		os.Exit(m.Run())
	}
	n, err := testns.StartNode(context.Background(), testns.NodeOptions{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(n.Proc())
	select {}
}

func TestANodeEndsWithItsStarter(t *testing.T) {
	testns.Root(t)
	starter := exec.Command("/proc/self/exe")
	starter.Env = append(os.Environ(), helperEnv+"=1")
	out, err := starter.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, starter.Start())
	proc, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	init := filepath.Join(strings.TrimSpace(proc), "1")
	require.DirExists(t, init)

	require.NoError(t, starter.Process.Kill())
	require.ErrorContains(t, starter.Wait(), "signal: killed")
	require.Eventually(t, func() bool {
		_, err := os.Stat(init)
		return err != nil
	}, 10*time.Second, time.Millisecond)
}
