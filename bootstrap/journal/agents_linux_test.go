// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/journaltest"
	"github.com/slipway-dev/slipway/internal/testns"
)

// For each agent, the list shows whether the process that claimed for it is alive.
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

// An object on one container's side is not the other container's, whatever its path; an object
// on the host belongs to both.
func TestPLAN14_EachContainerHasItsOwnObjects(t *testing.T) {
	s := newShared(t)
	write := func(agent, content string) {
		t.Run(agent, func(t *testing.T) {
			host, err := os.Open("/proc/thread-self/ns/mnt")
			require.NoError(t, err)
			defer host.Close()
			testns.Enter(t, testns.Mount)
			enter := func(ctx context.Context, _ []string, f func(context.Context) error) error {
				own, err := os.Open("/proc/thread-self/ns/mnt")
				require.NoError(t, err)
				defer own.Close()
				require.NoError(t, unix.Setns(int(host.Fd()), unix.CLONE_NEWNS))
				defer func() { require.NoError(t, unix.Setns(int(own.Fd()), unix.CLONE_NEWNS)) }()
				return f(ctx)
			}
			j, err := (&journal.Node{Dir: s.dir, Agent: agent, NoOwner: true, Handlers: []journal.Handler{s.v}}).Open(t.Context(), enter)
			require.NoError(t, err)
			defer j.Close()
			e := journal.Entry{Kind: "acme/value", Object: "/tmp/config", Before: value("0"), After: value(content)}
			require.NoError(t, j.Begin(step(t, j, "config"), e))
			e.Identity = "thing /tmp/host"
			e.Object, e.After = "/tmp/host", value("1")
			require.NoError(t, j.Begin(step(t, j, "config"), e))
			all := entries(t, j)
			require.Equal(t, "of agent "+agent+": acme/value /tmp/config", all[0].Identity)
			require.Equal(t, "thing /tmp/host", all[1].Identity, "as the caller says")
		})
	}
	write("first", "1")
	write("second", "2")
}
