// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/internal/snapshot"
)

const plugin = "#!/bin/sh\necho '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"1.0.0\"]}'\n"

// files are the node's files before the agent comes.
var files = map[string]string{
	"/etc/acme/config/network":         "other",
	"/etc/acme/config/mtu":             "1450\n",
	"/etc/acme/identity.json":          "an older one",
	"/etc/cni/net.d/10-other.conflist": `{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"other-cni","mtu":1500}]}`,
	"/opt/cni/bin/other-cni":           plugin,
	"/opt/cni/bin/acme-cni":            "an older one",
	"/etc/sysctl.d/90-acme.conf":       "# an administrator's\n",
	"/var/lib/other/file":              "",
	"/run/other/file":                  "",
}

// prepareFiles writes them below root.
func prepareFiles(root string) error {
	for path, content := range files {
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode)); err != nil {
			return err
		}
	}
	return nil
}

// memory is a node in a directory, with a kernel and a name in memory.
type memory struct {
	agent
	t      *testing.T
	kernel *bootstraptest.Kernel
}

func inMemoryHost() host {
	name := "node"
	return host{func() (string, error) { return name, nil }, func(to string) error { name = to; return nil }}
}

func inMemory(t *testing.T) memory {
	t.Helper()
	k := bootstraptest.NewKernel("eth0")
	k.PutValue("net.ipv4.conf.all.rp_filter", "2")
	a := agent{root: t.TempDir(), kernel: k, host: inMemoryHost(), environ: []string{"ACME_HOSTNAME=memory"}, plugins: fstest.MapFS{"acme-cni": {Data: []byte(plugin)}}, owner: "pod-a"}
	require.NoError(t, prepareFiles(a.root))
	return memory{a.remembering(), t, k}
}

// Names that are different each time: a mount's source, and a configuration's folder.
var ofOneTime = regexp.MustCompile(`slipway-[-._a-z0-9]{6,}|\.\.\d{4}_[\d_.]+`)

// timeless is s without the lock, which stays, the content of the journal, which grows
// with each change, and objects with a different name each time.
func timeless(s snapshot.Snapshot, root string) snapshot.Snapshot {
	delete(s, "file "+filepath.Join(root, "/run/acme.lock"))
	delete(s, "file "+filepath.Join(root, "/var/lib/acme/acme.last.json")) // tells the time
	if journal := "file " + filepath.Join(root, "/var/lib/acme/acme.journal"); s[journal] != "" {
		s[journal] = "there"
	}
	same := snapshot.Snapshot{}
	for object, state := range s {
		same[ofOneTime.ReplaceAllString(object, "*")] = ofOneTime.ReplaceAllString(state, "*")
	}
	return same
}

// state describes the whole node.
func (m memory) state() snapshot.Snapshot {
	m.t.Helper()
	s := snapshot.Snapshot{}
	require.NoError(m.t, s.Files(m.root))
	name, err := m.host.get()
	require.NoError(m.t, err)
	s["hostname"] = name
	for key, value := range m.kernel.Values() {
		s["sysctl "+key] = value
	}
	for _, path := range []string{"/run/acme/cgroup", "/run/acme/bpf"} {
		s["mount "+path] = strings.Join(m.kernel.Mounts(m.path(path)), " ")
	}
	return timeless(s, m.root)
}

func statuses(r *bootstrap.Report) map[bootstrap.Status]int {
	n := map[bootstrap.Status]int{}
	for _, result := range r.Results {
		n[result.Status]++
	}
	return n
}

func TestThePlanIsCheckedAppliedAndReverted(t *testing.T) {
	m := inMemory(t)
	before, plan := m.state(), m.plan()
	report, err := plan.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[bootstrap.Status]int{bootstrap.WouldChange: 9}, statuses(report))
	require.Empty(t, before.Diff(m.state()), "a check changes nothing")

	report, err = plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[bootstrap.Status]int{bootstrap.Changed: 9}, statuses(report))
	require.Equal(t, "0", m.kernel.Values()["net.ipv4.conf.all.rp_filter"])
	require.Equal(t, []string{"bpf"}, m.kernel.Mounts(m.path("/run/acme/bpf")))
	chain, err := os.ReadFile(m.path("/etc/cni/net.d/05-acme.conflist"))
	require.NoError(t, err)
	require.JSONEq(t, `{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"other-cni","mtu":1500},{"type":"acme-cni","mtu":1450}]}`, string(chain))
	applied := m.state()
	for _, line := range before.Diff(applied) {
		require.NotContains(t, strings.ToLower(line), "cilium", "all names are the agent's own")
	}

	report, err = plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[bootstrap.Status]int{bootstrap.Unchanged: 9}, statuses(report))
	require.Empty(t, applied.Diff(m.state()))

	_, err = plan.Revert(t.Context())
	require.NoError(t, err)
	require.Empty(t, before.Diff(m.state()))
}

func TestTheConfigurationIsTypedAndNamesWhatIsWrong(t *testing.T) {
	m := inMemory(t)
	put(t, m.path("/etc/acme/node/mtu"), "9000")
	put(t, m.path("/etc/acme/node/network"), "mine")
	s, _, err := m.resolve(t.Context())
	require.NoError(t, err)
	require.Equal(t, settings{Network: "other", MTU: 9000, RPFilter: "0", Forwarding: true, Hostname: "memory"}, s)

	put(t, m.path("/etc/acme/node/mtu"), "large")
	require.NoError(t, os.Remove(m.path("/etc/acme/config/network")))
	before := m.state()
	report, err := m.plan().Apply(t.Context())
	require.ErrorIs(t, err, configresolve.ErrUnset)
	require.ErrorContains(t, err, `"mtu"`)
	require.ErrorContains(t, err, m.path("/etc/acme/node"))
	require.Equal(t, map[bootstrap.Status]int{bootstrap.Failed: 1, bootstrap.Blocked: 8}, statuses(report))
	require.Empty(t, before.Diff(m.state()), "the node is not touched")
}

func TestAStepThatIsSwitchedOffIsUndone(t *testing.T) {
	m := inMemory(t)
	before, plan := m.state(), m.plan()
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1", m.kernel.Values()["net.ipv4.ip_forward"])
	put(t, m.path("/etc/acme/node/forwarding"), "false")
	_, err = plan.Apply(t.Context())
	require.NoError(t, err)
	for key, value := range m.kernel.Values() {
		if key != "net.ipv4.conf.all.rp_filter" {
			require.Equal(t, before["sysctl "+key], value, key)
		}
	}
}

// Each kernel call fails once; then the agent continues, and leaves nothing that an
// uninstall does not find.
func TestAnyErrnoIsNamedAndGotOver(t *testing.T) {
	type call struct{ op, path string }
	calls := map[call]bool{}
	m := inMemory(t)
	m.kernel.Fail = func(op, path string) error {
		calls[call{op, strings.TrimPrefix(path, m.root)}] = true
		return nil
	}
	_, err := m.plan().Apply(t.Context())
	require.NoError(t, err)
	require.Greater(t, len(calls), 10)
	var failed atomic.Int32
	t.Run("each", func(t *testing.T) {
		for c := range calls {
			t.Run(c.op+c.path, func(t *testing.T) {
				t.Parallel()
				m := inMemory(t)
				before, plan := m.state(), m.plan()
				m.kernel.Fail = func(op, path string) error {
					if op == c.op && strings.TrimPrefix(path, m.root) == c.path {
						return syscall.EIO
					}
					return nil
				}
				if report, err := plan.Apply(t.Context()); err != nil {
					failed.Add(1)
					require.ErrorIs(t, err, syscall.EIO)
					require.ErrorContains(t, err, filepath.Base(c.path))
					require.NotZero(t, statuses(report)[bootstrap.Failed], "the check names every step it fails")
				}
				m.kernel.Fail = nil
				_, err := plan.Apply(t.Context())
				require.NoError(t, err)
				_, err = plan.Revert(t.Context())
				require.NoError(t, err)
				require.Empty(t, before.Diff(m.state()))
			})
		}
	})
	require.Greater(t, failed.Load(), int32(5))
}

func TestWhatIsInUseStaysUntilTheNextRevert(t *testing.T) {
	m := inMemory(t)
	before, plan := m.state(), m.plan()
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)
	require.NoError(t, m.kernel.Pin(m.path("/run/acme/bpf/map")))
	_, err = plan.Revert(t.Context())
	require.ErrorContains(t, err, "map")
	require.NotEmpty(t, m.kernel.Mounts(m.path("/run/acme/bpf")))
	require.NoError(t, m.kernel.Unpin(m.path("/run/acme/bpf/map")))
	_, err = plan.Revert(t.Context())
	require.NoError(t, err)
	require.Empty(t, before.Diff(m.state()))
}

func TestItsOwnActionConforms(t *testing.T) {
	m := inMemory(t)
	act := func() bootstrap.Action { return identity{m.path("/etc/acme/identity.json"), []byte("acme")} }
	bootstraptest.Conformance{
		Action:   act,
		Handlers: []journal.Handler{identityFiles(m.path("/etc/acme/identity.json"))},
		State:    func() map[string]string { return m.state() },
		Others:   act,
		Break: func() (string, func()) {
			path := m.path("/etc/acme/identity.json")
			require.NoError(t, errors.Join(os.Rename(path, path+".away"), os.Mkdir(path, 0o755)))
			return "identity.json", func() {
				require.NoError(t, errors.Join(os.Remove(path), os.Rename(path+".away", path)))
			}
		},
	}.Test(t)
	content, err := os.ReadFile(m.path("/etc/acme/identity.json"))
	require.NoError(t, err)
	require.Equal(t, "acme", string(content), "another program's file stays")
	files := identityFiles(m.path("/etc/acme/identity.json"))
	require.Error(t, files.Owns(journal.Entry{Kind: kind + "/file", Object: "/etc/passwd"}))
}

func TestTheNewerPodOwnsTheNode(t *testing.T) {
	m := inMemory(t)
	before := m.state()
	_, err := m.plan().Apply(t.Context())
	require.NoError(t, err)
	newer := m.agent
	newer.owner = "pod-b"
	newer = newer.remembering()
	_, err = newer.plan().Apply(t.Context())
	require.NoError(t, err)
	applied := m.state()
	_, err = m.plan().Revert(t.Context())
	require.ErrorIs(t, err, journal.ErrNotOwner)
	require.Empty(t, applied.Diff(m.state()))
	_, err = newer.plan().Revert(t.Context())
	require.NoError(t, err)
	require.Empty(t, before.Diff(m.state()))
}

func put(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)))
}
