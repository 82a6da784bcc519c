// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"context"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/critest"
)

var (
	_ bootstrap.Action  = cri.Loaded{}
	_ bootstrap.Adviser = cri.Loaded{}
)

const (
	ours   = `{"cniVersion":"1.0.0","name":"ours","plugins":[{"type":"our-cni"}]}`
	theirs = `{"cniVersion":"1.0.0","name":"theirs","plugins":[{"type":"bridge"},{"type":"portmap"}]}`
)

func content(text string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(text), nil }
}

func TestALoadedConfigurationIsComparedByItsMeaning(t *testing.T) {
	h := newHost(t)
	s, err := h.serve(critest.Runtime{Info: critest.Containerd([]byte(ours), "/etc/cni/net.d", "/opt/cni/bin")}).Status(t.Context())
	require.NoError(t, err)
	for conf, want := range map[string]bool{
		ours: true, ours + "\n": true, theirs: false, `{"type":"our-cni"}`: true, `{"type":"bridge"}`: false,
		`{ "name":"ours", "cniVersion":"1.0.0","plugins":[{"type":"our-cni"}]}`: true,
	} {
		loads, err := s.Loads([]byte(conf))
		require.NoError(t, err)
		require.Equal(t, want, loads, conf)
	}
	_, err = s.Loads([]byte("{"))
	require.ErrorContains(t, err, "the configuration to load")
}

// In a plan, the step follows the one that installs, and waits.
func TestLoadedWaits(t *testing.T) {
	h := newHost(t)
	var loaded atomic.Bool
	info := func() map[string]string {
		if loaded.Load() {
			return critest.Containerd([]byte(ours), "/etc/cni/net.d", "/opt/cni/bin")()
		}
		return critest.Containerd([]byte(theirs), "/etc/cni/net.d", "/opt/cni/bin")()
	}
	h.serve(critest.Runtime{Info: info})
	step := cri.Loaded{Endpoint: cri.Endpoint{HostProc: h.proc}, Conf: content(ours)}
	changes, err := step.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{`wait for the container runtime to load the configuration: it has loaded "theirs"`}, changes)

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = step.Apply(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "the container runtime has not loaded the configuration: ")
	require.Equal(t, "cri.not-loaded", code.Of(err))

	ctx, stop := context.WithCancel(t.Context())
	asked := bootstrap.Plan{Steps: []bootstrap.Step{{Name: "loaded", Action: step}}, Trace: &bootstrap.Trace{Waiting: func(context.Context, string, string, time.Duration) { stop() }}}
	_, err = asked.Apply(ctx)
	require.ErrorContains(t, err, `it has loaded "theirs"`)
	require.Equal(t, "plan.canceled", bootstrap.Code(err), "the runtime has had no time")

	waiting := make(chan string, 1)
	plan := bootstrap.Plan{
		Steps: []bootstrap.Step{{Name: "loaded", Action: step, Timeout: time.Minute}},
		Trace: &bootstrap.Trace{Waiting: func(_ context.Context, _, what string, _ time.Duration) { waiting <- what; loaded.Store(true) }},
	}
	report, err := plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Changed, report.Results[0].Status)
	require.Contains(t, <-waiting, `it has loaded "theirs"`)
	changes, err = step.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, changes)
}

// The final error gives the runtime's last report, not a timeout of the next request.
func TestLoadedEndsWhileItAsks(t *testing.T) {
	h := newHost(t)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	var asked atomic.Int64
	h.serve(critest.Runtime{Info: func() map[string]string {
		if asked.Add(1) > 1 {
			end()
			<-ended
		}
		return critest.Containerd([]byte(theirs), "/etc/cni/net.d", "/opt/cni/bin")()
	}})
	err := cri.Loaded{Endpoint: cri.Endpoint{HostProc: h.proc}, Conf: content(ours)}.Apply(ctx)
	close(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, `the container runtime has not loaded the configuration: it has loaded "theirs"`)
}

func TestLoadedWaitsForTheRuntimeItself(t *testing.T) {
	h := newHost(t)
	step := cri.Loaded{Endpoint: cri.Endpoint{HostProc: h.proc}, Conf: content(ours)}
	changes, err := step.Check(t.Context())
	require.NoError(t, err)
	require.Contains(t, changes[0], "no container runtime listens")
	h.serve(critest.Runtime{Info: critest.Containerd(nil, "/etc/\x1b[2J", "/opt/cni/bin")})
	changes, err = step.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, `wait for the container runtime to load the configuration: it has loaded none; it says: cni config load failed: no network config found in /etc/\x1b[2J: cni plugin not initialized: failed to load cni config`, changes[0])
}

// CRI-O does not report what it has loaded: that is said beforehand, and nothing is waited for.
func TestRDY3_ARuntimeThatCannotSayWhatItLoadedIsNotWaitedFor(t *testing.T) {
	h := newHost(t)
	h.serve(critest.Runtime{Config: "[crio.network]\n"})
	step := cri.Loaded{Endpoint: cri.Endpoint{HostProc: h.proc}, Conf: content(ours)}
	report, err := (&bootstrap.Plan{Steps: []bootstrap.Step{{Name: "loaded", Action: step}}}).Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Unchanged, report.Results[0].Status)
	require.Contains(t, report.Results[0].Advice[0], "(containerd does): nothing is waited for")
	critest.Serve(t, h.listen("/run/crio/crio.sock"), critest.Runtime{})
	require.ErrorIs(t, step.Apply(t.Context()), cri.ErrSeveral)
	step.Conf = func(context.Context) ([]byte, error) { return nil, fs.ErrNotExist }
	_, err = step.Check(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
}
