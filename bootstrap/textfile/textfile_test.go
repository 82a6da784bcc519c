// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package textfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/textfile"
	"github.com/slipway-dev/slipway/internal/code"
)

func TestRDY5_MetricsOfARun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.prom")
	r := &bootstrap.Report{
		Op: "apply", Agent: `a"\` + "\n", Start: time.UnixMilli(1700000000500), Elapsed: 1500 * time.Millisecond,
		Results: []bootstrap.Result{
			{Step: "cgroup", Status: bootstrap.Changed},
			{Step: "sysctl", Status: bootstrap.Failed, Err: code.New(code.SysctlReadOnly, "no")},
		},
	}
	require.NoError(t, textfile.WriteFile(path, r))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, `# HELP slipway_run_failed Whether the last run failed, by the step and the code of the cause.
# TYPE slipway_run_failed gauge
slipway_run_failed{agent="a\"\\\n",op="apply",step="sysctl",code="sysctl.read-only"} 1
# HELP slipway_run_pending_steps Steps in which a check found something to do.
# TYPE slipway_run_pending_steps gauge
slipway_run_pending_steps{agent="a\"\\\n",op="apply"} 0
# HELP slipway_run_changed_steps Steps that changed something.
# TYPE slipway_run_changed_steps gauge
slipway_run_changed_steps{agent="a\"\\\n",op="apply"} 1
# HELP slipway_run_start_timestamp_seconds When the last run started.
# TYPE slipway_run_start_timestamp_seconds gauge
slipway_run_start_timestamp_seconds{agent="a\"\\\n",op="apply"} 1.7000000005e+09
# HELP slipway_run_duration_seconds How long the last run took, with all waiting.
# TYPE slipway_run_duration_seconds gauge
slipway_run_duration_seconds{agent="a\"\\\n",op="apply"} 1.5
`, string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode(), "the collector is another user")

	r = &bootstrap.Report{Op: "check", Agent: "a", Err: errors.New("no")}
	require.NoError(t, textfile.WriteFile(path, r))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), `slipway_run_failed{agent="a",op="check",step="",code="plan.failed"} 1`)
	require.NotContains(t, string(text), "start_timestamp", "it never started")

	require.ErrorContains(t, textfile.WriteFile(filepath.Join(t.TempDir(), "slipway.txt"), r), ".prom")
	require.ErrorContains(t, textfile.WriteFile("/nonexistent/slipway.prom", r), "/nonexistent")
}

// An init container leaves its result for the node's exporter.
func ExampleWriteFile() {
	err := textfile.WriteFile("/nonexistent/slipway-cilium.prom", &bootstrap.Report{Op: "apply", Agent: "cilium"})
	fmt.Println(errors.Is(err, os.ErrNotExist))
	// Output: true
}
