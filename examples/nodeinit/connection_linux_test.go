// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// firewalled is a node with an API server, and a firewall like Cilium's.
type firewalled struct {
	*node
	port string
}

func newFirewalled(t *testing.T) firewalled {
	t.Helper()
	t.Parallel() // the tests mostly wait
	n := newNode(t)
	var listener net.Listener
	n.do(func() (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	newClusterAt(t, listener)
	n.shell("nft add table ip test; nft add chain ip test in '{ type filter hook input priority 0; }'")
	return firewalled{n, port}
}

// leavesOut drops packets that match an nft(8) rule, unless they have the mark of Cilium's own
// packets. Like Cilium's policy, it drops silently.
func (n firewalled) leavesOut(match string) {
	n.t.Helper()
	n.shell("nft add rule ip test in " + match + " meta mark != 0x10b00 drop")
}

// build runs build-config on the node, with only these capabilities, or with all if that is
// empty, and returns the time it took.
func (n firewalled) build(capabilities, host string, args ...string) (outcome, time.Duration) {
	n.t.Helper()
	args = append([]string{"build-config", "--k8s-api-server-urls", "http://" + host + ":" + n.port, "--dest", filepath.Join(n.work, "config"),
		"--node-name", "node1", "--k8s-namespace", "ns1", "--log-level", "debug", "--k8s-retry-spread", "100ms"}, args...)
	cmd := n.Command(binary, args...)
	if capabilities != "" {
		cmd = n.Command("setpriv", append([]string{"--bounding-set", capabilities, "--inh-caps", "-all", "--", binary}, args...)...)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	return finish(n.t, cmd.Run, &stdout, &stderr), time.Since(start)
}

// If a policy of the host firewall drops packets to the API server, no agent runs that could
// change the policy, unless its configuration can be read.
func TestCFG13_BuildConfigPassesCiliumsHostFirewall(t *testing.T) {
	n := newFirewalled(t)
	o, took := n.build("", "127.0.0.1")
	require.Zero(t, o.code, o.stderr)
	require.NotContains(t, o.stderr, "mark")
	t.Logf("without a firewall: %v", took.Round(time.Millisecond))

	n.leavesOut("tcp dport " + n.port)
	o, took = n.build("", "127.0.0.1")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stderr, "the API server answers only with Cilium's mark")
	require.GreaterOrEqual(t, took, 2*time.Second)
	t.Logf("with one: %v", took.Round(time.Millisecond))

	o, _ = n.build("", "127.0.0.1", "--enable-k8s-host-firewall-bypass=false", "--timeout", "5s")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "--timeout of 5s is over")
}

// Without NET_ADMIN nothing is marked, and that is no error.
func TestCFG13_BuildConfigNeedsNoCapability(t *testing.T) {
	n := newFirewalled(t)
	o, _ := n.build("-all", "127.0.0.1")
	require.Zero(t, o.code, o.stderr)

	n.leavesOut("tcp dport " + n.port)
	o, _ = n.build("-all", "127.0.0.1", "--timeout", "6s")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "the packets to the API server have no mark")
	require.Contains(t, o.stderr, "CAP_NET_ADMIN")
	last := o.stderr[strings.LastIndex(strings.TrimSpace(o.stderr), "\n")+1:]
	require.NotContains(t, last, "CAP_NET_ADMIN", "it is not why it failed")
}

// An API server's name is looked up with the mark too: the agent's own DNS proxy, which would
// otherwise answer, may not run yet.
func TestCFG13_BuildConfigAsksForANameWithTheMark(t *testing.T) {
	n := newFirewalled(t)
	var server net.PacketConn
	n.do(func() (err error) {
		server, err = net.ListenPacket("udp", "127.0.0.1:53")
		return err
	})
	t.Cleanup(func() { server.Close() })
	go answerNames(server)
	n.write("/etc/resolv.conf", "nameserver 127.0.0.1\n")

	o, _ := n.build("", "api.test")
	require.Zero(t, o.code, o.stderr)
	require.NotContains(t, o.stderr, "mark")

	n.leavesOut("udp dport 53")
	o, took := n.build("", "api.test")
	require.Zero(t, o.code, o.stderr)
	require.GreaterOrEqual(t, took, 2*time.Second)
	require.Less(t, took, 4*time.Second, "the server answers without")

	n.leavesOut("tcp dport " + n.port)
	o, took = n.build("", "api.test")
	require.Zero(t, o.code, o.stderr)
	require.GreaterOrEqual(t, took, 4*time.Second)
}

// answerNames answers each question for an IPv4 address with 127.0.0.1, and other questions
// with no records (RFC 1035, section 4).
func answerNames(server net.PacketConn) {
	packet := make([]byte, 512)
	for {
		size, from, err := server.ReadFrom(packet)
		if err != nil {
			return
		}
		end := 12 // of the question, after the header
		for end < size && packet[end] != 0 {
			end += 1 + int(packet[end])
		}
		end += 5 // the root, type and class
		answer := append([]byte{packet[0], packet[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, packet[12:end]...)
		if packet[end-3] == 1 { // type A
			answer[7] = 1
			answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
		}
		_, _ = server.WriteTo(answer, from)
	}
}
