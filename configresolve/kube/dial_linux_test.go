// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"io/fs"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/internal/testns"
)

// firewalled is a network namespace with a listener on a port, and a firewall.
type firewalled struct {
	address  string
	attempts []kube.Attempt // of the last dial
	after    func()         // called after each attempt
}

// newFirewalled enters it. Rules are for nft(8) and apply to packets to the port.
func newFirewalled(t *testing.T, rules ...string) *firewalled {
	t.Helper()
	t.Parallel() // the tests mostly wait
	testns.Enter(t, testns.Net)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	f := &firewalled{address: listener.Addr().String()}
	_, port, err := net.SplitHostPort(f.address)
	require.NoError(t, err)
	nft(t, "add table ip test; add chain ip test out { type filter hook output priority 0; }; add counter ip test marked")
	nft(t, "add rule ip test out tcp dport "+port+" meta mark != 0 counter name marked")
	for _, rule := range rules {
		nft(t, "add rule ip test out tcp dport "+port+" "+rule)
	}
	return f
}

func nft(t *testing.T, command string) string {
	t.Helper()
	out, err := exec.Command("nft", strings.Fields(command)...).CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)
	return string(out)
}

// dial connects with Cilium's mark, or without one if mark is 0. It dials on the caller's
// thread.
func (f *firewalled) dial(t *testing.T, mark uint32, timeout time.Duration) error {
	t.Helper()
	f.attempts = nil
	config, err := kube.Connection{
		Servers: []string{"http://" + f.address}, Mark: mark, DialTimeout: timeout,
		Dialed: func(a kube.Attempt) {
			f.attempts = append(f.attempts, a)
			if f.after != nil {
				f.after()
			}
		},
	}.Config()
	require.NoError(t, err)
	conn, err := config.Dial(t.Context(), "tcp", f.address)
	if err == nil {
		require.NoError(t, conn.Close())
	}
	return err
}

func (f *firewalled) requireNoneMarked(t *testing.T) {
	t.Helper()
	require.Contains(t, nft(t, "list counter ip test marked"), "packets 0 bytes 0")
}

const dropsUnmarked = "meta mark != 0x10b00 drop"

func TestCFG13_AServerBehindAFirewallAnswersWithTheMark(t *testing.T) {
	f := newFirewalled(t, dropsUnmarked)
	start := time.Now()
	require.NoError(t, f.dial(t, kube.Cilium().Mark, 0))
	require.GreaterOrEqual(t, time.Since(start), 2*time.Second)
	t.Logf("connected after %v", time.Since(start).Round(time.Millisecond))
	require.Len(t, f.attempts, 2)
	require.ErrorContains(t, f.attempts[0].Err, "timeout")
	f.attempts[0].Err = nil
	require.Equal(t, []kube.Attempt{{Address: f.address}, {Address: f.address, Marked: true}}, f.attempts)

	require.ErrorContains(t, f.dial(t, 0, 3*time.Second), "timeout", "without the option it never does")
	require.Len(t, f.attempts, 1)
}

// If the firewall rejects the connection, the marked attempt follows at once.
func TestCFG13_AServerThatIsRefusedIsTriedWithTheMarkAtOnce(t *testing.T) {
	f := newFirewalled(t, "meta mark != 0x10b00 reject with tcp reset")
	for _, timeout := range []time.Duration{0, -1} {
		require.NoError(t, f.dial(t, kube.Cilium().Mark, timeout))
		require.Len(t, f.attempts, 2)
		require.ErrorIs(t, f.attempts[0].Err, unix.ECONNREFUSED)
	}
}

func TestCFG13_AServerThatAnswersSeesNoMark(t *testing.T) {
	f := newFirewalled(t)
	for range 20 {
		require.NoError(t, f.dial(t, kube.Cilium().Mark, 0))
		require.Equal(t, []kube.Attempt{{Address: f.address}}, f.attempts)
	}
	f.requireNoneMarked(t)
}

// A server that was away is found again even if marked packets do not arrive.
func TestCFG13_ItIsTriedAgainWithoutTheMark(t *testing.T) {
	f := newFirewalled(t, "drop")
	f.after = func() {
		if len(f.attempts) == 2 {
			nft(t, "flush chain ip test out")
			nft(t, "add rule ip test out meta mark != 0 drop")
		}
	}
	require.NoError(t, f.dial(t, kube.Cilium().Mark, 0))
	require.Len(t, f.attempts, 3)
	require.False(t, f.attempts[2].Marked)
}

func TestCFG13_NoAnswerAtAll(t *testing.T) {
	f := newFirewalled(t, "drop")
	err := f.dial(t, kube.Cilium().Mark, 9*time.Second)
	require.ErrorContains(t, err, "timeout")
	var marked []bool
	for _, a := range f.attempts {
		marked = append(marked, a.Marked)
	}
	require.Equal(t, []bool{false, true, false, true}, marked, "two seconds each, then twice as many, as far as there is time")

	nft(t, "flush chain ip test out")
	f.address = "127.0.0.1:1" // no listener there
	err = f.dial(t, kube.Cilium().Mark, 0)
	require.ErrorIs(t, err, unix.ECONNREFUSED)
	require.ErrorContains(t, err, "also tried with the mark 0x10b00")
	require.Len(t, f.attempts, 2)
}

func TestCFG14_ConnectingTakesAsLongAsIsSaid(t *testing.T) {
	f := newFirewalled(t, "drop")
	start := time.Now()
	require.ErrorContains(t, f.dial(t, 0, 300*time.Millisecond), "timeout")
	require.WithinRange(t, time.Now(), start.Add(300*time.Millisecond), start.Add(3*time.Second))
}

// Setting a mark needs CAP_NET_ADMIN: without it, connections are made without a mark, and that
// is no error.
func TestCFG13_TheMarkNeedsACapabilityAndGoesOnWithout(t *testing.T) {
	f := newFirewalled(t, dropsUnmarked)
	withoutCapabilities(t)
	err := f.dial(t, kube.Cilium().Mark, 9*time.Second)
	require.ErrorContains(t, err, "timeout")
	require.NotErrorIs(t, err, fs.ErrPermission)
	require.Len(t, f.attempts, 3, "the last attempt takes the rest of the time")
	require.ErrorIs(t, f.attempts[1].Refused, fs.ErrPermission)
	require.ErrorContains(t, f.attempts[1].Refused, "mark the packets of a socket: operation not permitted (needs CAP_NET_ADMIN in the user namespace of the network namespace)")
	require.Equal(t, []bool{false, true, false}, []bool{f.attempts[0].Marked, f.attempts[1].Marked, f.attempts[2].Marked})
}

// withoutCapabilities drops all capabilities of the thread, which ends with the test.
func withoutCapabilities(t *testing.T) {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	require.NoError(t, unix.Capset(&header, &none[0]))
}
