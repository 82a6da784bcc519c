// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/journaltest"
)

// Of each agent it is asked whether the process that claimed for it lives.
func TestPLAN14_EachAgentsOwnerIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	for _, agent := range []string{"alive", "dead", "self"} {
		claim(t, dir, journal.Node{Agent: agent, Owner: "host"})
	}
	edit := func(agent, process string) {
		path := filepath.Join(dir, agent+".journal")
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		var all []json.RawMessage
		for _, text := range journaltest.Texts(raw) {
			all = append(all, regexp.MustCompile(`"pid":\d+,"start":\d+`).ReplaceAll(text, []byte(process)))
		}
		journaltest.Write(t, path, all...)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", os.Getppid()))
	require.NoError(t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
	edit("alive", fmt.Sprintf(`"pid":%d,"start":%s`, os.Getppid(), fields[20]))
	edit("dead", fmt.Sprintf(`"pid":%d,"start":1`, os.Getppid()))

	seen := map[string]string{}
	for _, a := range agents(t, dir) {
		require.NoError(t, a.AliveErr)
		seen[a.Name] = a.Alive
	}
	require.Equal(t, map[string]string{
		"alive": fmt.Sprintf(`process %d, which claimed the node for its owner "host", runs`, os.Getppid()), "dead": "", "self": "",
	}, seen)
}
