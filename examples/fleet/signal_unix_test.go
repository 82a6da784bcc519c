// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// It has nothing to finish: neither a reader that no longer reads nor a server that does not
// answer makes it stay.
func TestRDY6_ASignalEndsItAtOnce(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(fmt.Sprint("while its output is not read, ", signal), func(t *testing.T) {
			c := newCluster(t)
			for i := range 5000 {
				c.add(fmt.Sprintf("a-node-with-a-name-%04d", i), nil)
			}
			read, write, err := os.Pipe()
			require.NoError(t, err)
			defer read.Close()
			cmd := exec.Command(binary, "--kubeconfig", c.kubeconfig, "--output", "json")
			cmd.Stdout = write
			require.NoError(t, cmd.Start())
			require.NoError(t, write.Close())
			_, err = read.Read(make([]byte, 1)) // the rest does not fit into the pipe
			require.NoError(t, err)
			requireEnds(t, cmd, signal)
		})
		t.Run(fmt.Sprint("without an answer, ", signal), func(t *testing.T) {
			asked := make(chan struct{}, 1)
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				asked <- struct{}{}
				<-r.Context().Done()
			}))
			defer server.Close()
			cmd := exec.Command(binary, "--kubeconfig", writeKubeconfig(t, server.URL))
			require.NoError(t, cmd.Start())
			<-asked
			requireEnds(t, cmd, signal)
		})
	}
}

// requireEnds requires that the process ends by itself, with the status that a shell has for
// one that a signal ended.
func requireEnds(t *testing.T, cmd *exec.Cmd, signal syscall.Signal) {
	t.Helper()
	require.NoError(t, cmd.Process.Signal(signal))
	require.Error(t, cmd.Wait())
	require.Equal(t, 128+int(signal), cmd.ProcessState.ExitCode())
}
