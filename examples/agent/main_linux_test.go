// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "agent-test-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "agent")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(fmt.Errorf("build the agent: %w", err))
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// get queries the probe on the node. The calling thread makes the connection, and so is in the
// node's network namespace.
func get(n *bootstraptest.Node, header string) (status int, body string, err error) {
	err = n.Do(context.Background(), func(context.Context) error {
		conn, err := net.Dial("tcp", "127.0.0.1:9879")
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: node\r\n%sConnection: close\r\n\r\n", header); err != nil {
			return err
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		raw, err := io.ReadAll(response.Body)
		status, body = response.StatusCode, string(raw)
		return err
	})
	return status, body, err
}

// start runs the agent on the node; each report it logs is an event.
func start(t *testing.T, n *bootstraptest.Node, args ...string) (cmd *bootstraptest.Cmd, lines <-chan string) {
	t.Helper()
	cmd = n.Command(binary, append([]string{"--interval", "50ms"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "AGENT_CLUSTER_NAME=test"}
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ch := make(chan string, 10000)
	go func() {
		defer close(ch)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			ch <- s.Text()
		}
	}()
	return cmd, ch
}

// eventually asks after each line that the agent logs, and from time to time, because a run
// without changes logs nothing.
func eventually(t *testing.T, lines <-chan string, what string, ask func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case <-time.After(100 * time.Millisecond):
			if ask() {
				return
			}
		case line, open := <-lines:
			if ask() {
				return
			}
			require.True(t, open, "the agent ended before %s", what)
			t.Log(line)
		case <-limit:
			t.Fatalf("no %s within 20 s", what)
		}
	}
}

// healthy waits until the node is.
func healthy(t *testing.T, n *bootstraptest.Node, lines <-chan string) {
	t.Helper()
	eventually(t, lines, "health", func() bool { status, _, _ := get(n, ""); return status == 200 })
}

// failing waits until the node is not healthy, as the probe says.
func failing(t *testing.T, n *bootstraptest.Node, lines <-chan string, why string) {
	t.Helper()
	eventually(t, lines, why, func() bool {
		status, body, _ := get(n, "brief: true\r\n")
		return status == 503 && strings.Contains(body, why)
	})
}

// end asks the agent to end, which it does without an error.
func end(t *testing.T, cmd *bootstraptest.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

func write(t *testing.T, n *bootstraptest.Node, path, content string) {
	t.Helper()
	require.NoError(t, n.Do(context.Background(), func(context.Context) error {
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600))
	}))
}

func read(t *testing.T, n *bootstraptest.Node, path string) string {
	t.Helper()
	var content []byte
	require.NoError(t, n.Do(context.Background(), func(context.Context) (err error) {
		content, err = os.ReadFile(path)
		return err
	}))
	return string(content)
}

func TestTheAgentPreparesItsNodeAndKeepsItSo(t *testing.T) {
	const forward = "/proc/sys/net/ipv4/ip_forward"
	n := bootstraptest.NewNode(t)
	write(t, n, forward, "0")
	cmd, lines := start(t, n)
	healthy(t, n, lines)
	require.Equal(t, "1\n", read(t, n, forward))
	require.Equal(t, "test", read(t, n, "/run/slipway-agent/config/cluster-name"))
	_, brief, err := get(n, "brief: true\r\n")
	require.NoError(t, err)
	require.Equal(t, "ok\n", brief)
	_, body, err := get(n, "")
	require.NoError(t, err)
	require.Contains(t, body, "ip-forwarding")

	write(t, n, forward, "0")
	eventually(t, lines, "repair", func() bool { return read(t, n, forward) == "1\n" })

	end(t, cmd)
	require.Equal(t, "1\n", read(t, n, forward), "and leaves the node as it is")
}

func TestTheProbeTellsWhatIsWrong(t *testing.T) {
	n := bootstraptest.NewNode(t)
	const config = "/run/config.yaml"
	cmd, lines := start(t, n, "--source", "file:"+config)
	failing(t, n, lines, "config.yaml")
	write(t, n, config, "cluster-name: test\n")
	healthy(t, n, lines)
	write(t, n, config, "enable-ip-forwarding: perhaps\n")
	failing(t, n, lines, "enable-ip-forwarding")
	_, body, err := get(n, "")
	require.NoError(t, err)
	require.Contains(t, body, "blocked")

	write(t, n, config, "enable-ip-forwarding: false\n")
	healthy(t, n, lines)
	end(t, cmd)
}
