// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/journaltest"
)

// recordedAgo changes the times in the agent's journal.
func (n *node) recordedAgo(agent string, ago time.Duration) {
	n.t.Helper()
	path := "/var/lib/slipway/" + agent + ".journal"
	at := regexp.MustCompile(`"(time|since)":"[^"]*"`)
	var edited []json.RawMessage
	for _, record := range journaltest.Texts([]byte(n.read(path))) {
		edited = append(edited, at.ReplaceAll(record, []byte(`"$1":"`+time.Now().Add(-ago).UTC().Format(time.RFC3339)+`"`)))
	}
	n.write(path, string(journaltest.Format(edited...)))
}

// The journal tells ages as people do: in one unit, rounded down.
func TestPLAN6_TheJournalTellsAges(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.ok("mount-bpffs", "/run/some/bpf", "--owner", "pod-1")
	for says, ago := range map[string]time.Duration{
		"just now": 0, "1 minute ago": 65 * time.Second, "23 minutes ago": 23*time.Minute + 5*time.Second, "1 hour ago": 100 * time.Minute,
		"11 hours ago": 11*time.Hour + 5*time.Minute, "1 day ago": 30 * time.Hour, "400 days ago": 400*24*time.Hour + time.Hour,
	} {
		n.recordedAgo("cilium", ago)
		require.Regexp(t, `(?m)^bpffs +bpffs/mount +"/run/some/bpf" +done +`+says+`$`, n.ok("journal").stdout)
		require.Contains(t, n.ok("status").stdout, "  owner     \"pod-1\", generation 1, since "+says+"\n")
	}
	n.recordedAgo("cilium", -time.Hour)
	require.Regexp(t, `done +20\S+Z, by a clock that is ahead\n`, n.ok("journal").stdout)
}
