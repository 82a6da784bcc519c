// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package configdir_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/internal/testledger"
)

const (
	victimDir   = "CONFIGRESOLVE_TEST_DIR"
	victimState = "CONFIGRESOLVE_TEST_STATE"
)

// TestMain also serves as the process that writes until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		victim(dir, os.Getenv(victimState))
	}
	os.Exit(m.Run())
}

// victim alternates between two configurations, recorded in one ledger, and prints a line
// before each change.
func victim(dir, stateDir string) {
	book, err := (&ledger.Ledger{Dir: stateDir, Agent: "agent", NoOwner: true}).Open(context.Background())
	for i := 0; ; i++ {
		var c *configresolve.Config
		if err == nil {
			c, err = configresolve.Resolve(context.Background(), configresolve.Static{Values: variant(i)})
		}
		if err == nil {
			fmt.Println("apply")
			err = testledger.Step{Wanter: configdir.Writer{Path: dir, Config: c}, Book: book}.Apply(context.Background())
		}
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
}

func variant(i int) values {
	v := values{"version": fmt.Sprint(i % 2), "same": "1"}
	for k := range 10 {
		v[fmt.Sprintf("key-%d-%d", i%2, k)] = strings.Repeat("x", 100*k)
	}
	return v
}

// killed runs the victim and kills it with SIGKILL after n lines, wherever it is by then.
func killed(t *testing.T, n int, dir, stateDir string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimDir+"="+dir, victimState+"="+stateDir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for range n {
		require.True(t, lines.Scan())
		require.NotContains(t, lines.Text(), "error:")
	}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
}

func TestPLAN6_KilledAndReverted(t *testing.T) {
	for run := range 16 {
		root := t.TempDir()
		dir, stateDir := filepath.Join(root, "deep", "d"), filepath.Join(root, "state")
		if run%2 == 0 { // an earlier layout
			other(t, dir, "..data_17", values{"version": "0", "gone": strings.Repeat("x", 5000)}, 0o600)
			write(t, filepath.Join(dir, "same"), "a person's file")
		} else {
			require.NoError(t, os.MkdirAll(dir, 0o755))
		}
		before, was := tree(t, root), shown(dir)
		killed(t, 1+rand.IntN(6), dir, stateDir)

		action := recorded{configdir.Writer{Path: dir, Config: config(t, variant(0))}, t, stateDir, "agent"}
		if rand.IntN(2) == 0 {
			require.NoError(t, action.Apply(t.Context()))
			requireLayout(t, dir, action.Config)
		}
		replaced := shown(dir) != was
		require.NoError(t, action.Undo(t.Context()))
		requireUndone(t, root, dir, before, replaced, fmt.Sprint("killed in run ", run))
	}
}
