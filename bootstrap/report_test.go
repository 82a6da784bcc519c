// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
)

// everything is a report with a step of each status, and texts that need care.
func everything() *bootstrap.Report {
	failed := func(step, op string, err error) error {
		return &bootstrap.StepError{Step: step, Op: op, Err: err}
	}
	return &bootstrap.Report{Results: []bootstrap.Result{
		{Step: "config", Status: bootstrap.Unchanged, Elapsed: 1234567 * time.Nanosecond},
		{Step: "cleanup", Status: bootstrap.Skipped},
		{Step: "cgroup", Status: bootstrap.Changed, Changes: []string{"make directory /run/ä", "mount cgroup2 on /run/ä"}, Elapsed: 42 * time.Microsecond},
		{Step: "sysctl", Status: bootstrap.WouldChange, Changes: []string{"set net.ipv4.ip_forward = 1 (is 0) <now>"}, Elapsed: 2 * time.Millisecond},
		{Step: "links", Status: bootstrap.Unknown, Err: failed("links", "check", errors.New("no such device \x1b[2J")), Elapsed: time.Millisecond},
		{Step: "bpffs", Status: bootstrap.Failed, Changes: []string{"mount bpf on /sys/fs/bpf"}, Elapsed: 90 * time.Second,
			Err: failed("bpffs", "apply", errors.Join(errors.New("first"), errors.New("second")))},
		{Step: "cni", Status: bootstrap.Blocked, Err: errors.New("it comes after step bpffs, which failed")},
		{Step: "readiness", Status: bootstrap.NotRun},
	}}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestReportText(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, everything().WriteText(&b))
	golden(t, "report.txt", b.Bytes())

	b.Reset()
	require.NoError(t, (&bootstrap.Report{}).WriteText(&b))
	require.Equal(t, "STEP  STATUS  TIME  DETAIL\n\nno steps\n", b.String())

	b.Reset()
	require.NoError(t, (&bootstrap.Report{Results: everything().Results[:1]}).WriteText(&b))
	require.Contains(t, b.String(), "\n1 step: unchanged\n")
}

func TestPLAN4_ReportJSON(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, everything().WriteJSON(&b))
	golden(t, "report.json", b.Bytes())

	compact, err := json.Marshal(everything())
	require.NoError(t, err)
	require.JSONEq(t, b.String(), string(compact))

	byValue, err := json.Marshal(*everything())
	require.NoError(t, err)
	require.Equal(t, string(compact), string(byValue))
}

func TestPLAN4_ReportJSONExactly(t *testing.T) {
	report := bootstrap.Report{Results: []bootstrap.Result{
		{Step: "a", Status: bootstrap.Changed, Changes: []string{"do it"}, Elapsed: 1500 * time.Microsecond},
		{Step: "b", Status: bootstrap.Failed, Err: errBoom},
	}}
	got, err := json.Marshal(report)
	require.NoError(t, err)
	require.Equal(t, `{"results":[{"step":"a","status":"changed","changes":["do it"],"elapsedMs":1.5},`+
		`{"step":"b","status":"failed","changes":[],"error":"boom","elapsedMs":0}]}`, string(got))

	got, err = json.Marshal(bootstrap.Report{})
	require.NoError(t, err)
	require.Equal(t, `{"results":[]}`, string(got))
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errBoom }

func TestReportWriteErrors(t *testing.T) {
	require.ErrorIs(t, everything().WriteText(fullDisk{}), errBoom)
	require.ErrorIs(t, everything().WriteJSON(fullDisk{}), errBoom)
}

func TestReportQuestions(t *testing.T) {
	r := everything()
	require.Equal(t, 1, r.Count(bootstrap.Failed))
	require.Equal(t, 3, r.Count(bootstrap.Failed, bootstrap.Blocked, bootstrap.NotRun))
	require.Zero(t, r.Count())
	for _, tc := range []struct {
		status bootstrap.Status
		want   bool
	}{
		{bootstrap.Unchanged, false}, {bootstrap.WouldChange, true}, {bootstrap.Unknown, true},
		{bootstrap.Changed, true}, {bootstrap.Failed, false}, {bootstrap.Skipped, false},
		{bootstrap.Blocked, false}, {bootstrap.NotRun, false},
	} {
		one := &bootstrap.Report{Results: []bootstrap.Result{{Status: tc.status}}}
		require.Equal(t, tc.want, one.Changed(), tc.status)
	}
}
