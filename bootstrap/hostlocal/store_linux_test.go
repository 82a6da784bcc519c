// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostlocal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostlocal"
	"github.com/slipway-dev/slipway/internal/testns"
)

const network = "agent"

// node has host-local's store, and a runtime.
type node struct {
	t         *testing.T
	data      string
	sandboxes []string
	asked     int
}

func newNode(t *testing.T) *node { return &node{t: t, data: t.TempDir()} }

func (n *node) store() hostlocal.Store {
	return hostlocal.Store{Network: network, DataDir: n.data, Sandboxes: n.list}
}

func (n *node) list(context.Context) ([]string, error) {
	n.asked++
	return n.sandboxes, nil
}

func (n *node) path(name string) string { return filepath.Join(n.data, network, name) }

// write writes a file of the store, dated an hour ago.
func (n *node) write(name, content string) {
	n.t.Helper()
	require.NoError(n.t, os.MkdirAll(n.path(""), 0o755))
	require.NoError(n.t, os.WriteFile(n.path(name), []byte(content), 0o644))
	n.age(name)
}

func (n *node) age(name string) {
	n.t.Helper()
	ago := time.Now().Add(-time.Hour)
	require.NoError(n.t, os.Chtimes(n.path(name), ago, ago))
}

// names lists the store's files, without host-local's own.
func (n *node) names() []string {
	n.t.Helper()
	entries, err := os.ReadDir(n.path(""))
	require.NoError(n.t, err)
	var names []string
	for _, e := range entries {
		if e.Name() != "lock" && !strings.HasPrefix(e.Name(), "last_reserved_ip") {
			names = append(names, e.Name())
		}
	}
	return names
}

// plugin calls the real host-local, which has four IPv4 addresses and four IPv6 addresses.
func (n *node) plugin(command, id string) (ips []string, err error) {
	n.t.Helper()
	conf := fmt.Sprintf(`{"cniVersion":"1.0.0","name":%q,"type":"ptp","ipam":{"type":"host-local","dataDir":%q,
		"ranges":[[{"subnet":"10.9.0.0/29","rangeStart":"10.9.0.2","rangeEnd":"10.9.0.5"}],[{"subnet":"fd00::/125","rangeStart":"fd00::2","rangeEnd":"fd00::5"}]]}}`, network, n.data)
	cmd := exec.CommandContext(n.t.Context(), hostLocal, "")
	cmd.Stdin = strings.NewReader(conf)
	cmd.Env = []string{"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + id, "CNI_NETNS=/proc/self/ns/net", "CNI_IFNAME=eth0", "CNI_PATH=/usr/lib/cni"}
	out := &bytes.Buffer{}
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		return nil, errors.New(out.String())
	}
	if command != "ADD" {
		return nil, nil
	}
	var result struct{ IPs []struct{ Address string } }
	require.NoError(n.t, json.Unmarshal(out.Bytes(), &result))
	for _, ip := range result.IPs {
		ips = append(ips, ip.Address)
	}
	return ips, nil
}

const hostLocal = "/usr/lib/cni/host-local"

func needHostLocal(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(hostLocal); err != nil {
		testns.Skip(t, "host-local is missing: make tools")
	}
}

// A range used up by leaked addresses serves pods again, and no pod loses its address.
func TestRDY4_LeakedAddressesAreReleased(t *testing.T) {
	needHostLocal(t)
	n := newNode(t)
	for _, id := range []string{"alive", "gone-1", "stopped", "gone-2"} {
		_, err := n.plugin("ADD", id)
		require.NoError(t, err)
	}
	_, err := n.plugin("ADD", "new")
	require.ErrorContains(t, err, "no IP addresses available")
	for _, name := range n.names() {
		n.age(name)
	}

	n.sandboxes = []string{"alive", "stopped"} // the runtime also knows stopped sandboxes
	changes, err := n.store().Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"release 10.9.0.3: the container runtime does not know the sandbox gone-1",
		"release 10.9.0.5: the container runtime does not know the sandbox gone-2",
		"release fd00::3: the container runtime does not know the sandbox gone-1",
		"release fd00::5: the container runtime does not know the sandbox gone-2",
	}, changes)
	require.Len(t, n.names(), 8, "a check changes nothing")
	require.NoError(t, n.store().Apply(t.Context()))
	require.Equal(t, []string{"10.9.0.2", "10.9.0.4", "fd00::2", "fd00::4"}, n.names())

	ips, err := n.plugin("ADD", "new")
	require.NoError(t, err)
	require.Equal(t, []string{"10.9.0.3/29", "fd00::3/125"}, ips)
	_, err = n.plugin("DEL", "alive")
	require.NoError(t, err)
	require.Equal(t, []string{"10.9.0.3", "10.9.0.4", "fd00::3", "fd00::4"}, n.names())
}

func TestRDY4_ACorruptFileIsMovedAsideAndTheRestKept(t *testing.T) {
	n := newNode(t)
	n.sandboxes = []string{"alive"}
	for name, content := range map[string]string{
		"10.9.0.2": "alive\r\neth0", "10.9.0.3": "", "10.9.0.4": strings.Repeat("\x00", 9), "10.9.0.5": strings.Repeat("a", 2000),
		"10.9.0.6": "alive\neth0\n", "10.9.0.7": "alive", "10.9.0.8": "../alive\r\neth0", "10.9.0.10": "gone\r\neth0",
		"last_reserved_ip.0": "nonsense", "10.9.0.3.corrupt": "of last week", "notes": "",
	} {
		n.write(name, content)
	}
	require.NoError(t, os.Mkdir(n.path("10.9.0.9"), 0o755))
	n.age("10.9.0.9")
	changes, err := n.store().Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"move the reservation of 10.9.0.3 aside, to 10.9.0.3.corrupt: it is empty",
		`move the reservation of 10.9.0.4 aside, to 10.9.0.4.corrupt: it names no sandbox, but holds "\x00\x00\x00\x00\x00\x00\x00\x00\x00"`,
		"move the reservation of 10.9.0.5 aside, to 10.9.0.5.corrupt: it has 2000 bytes",
		`move the reservation of 10.9.0.8 aside, to 10.9.0.8.corrupt: it names no sandbox, but holds "../alive\r\neth0"`,
		"move the reservation of 10.9.0.9 aside, to 10.9.0.9.corrupt: it is not a regular file",
		"release 10.9.0.10: the container runtime does not know the sandbox gone",
	}, changes)
	require.NoError(t, n.store().Apply(t.Context()))
	require.Equal(t, []string{
		"10.9.0.2", "10.9.0.3.corrupt", "10.9.0.4.corrupt", "10.9.0.5.corrupt", "10.9.0.6", "10.9.0.7", "10.9.0.8.corrupt", "10.9.0.9.corrupt", "notes",
	}, n.names())
	left, err := n.store().Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)

	needHostLocal(t)
	for _, want := range []string{"10.9.0.3/29", "10.9.0.4/29", "10.9.0.5/29"} { // host-local assigns them again
		ips, err := n.plugin("ADD", "new-"+want[:8])
		require.NoError(t, err)
		require.Equal(t, want, ips[0])
	}
}

// A runtime lists a sandbox only once it has its network.
func TestRDY4_ASandboxThatIsBeingMadeKeepsItsAddress(t *testing.T) {
	n := newNode(t)
	n.write("10.9.0.2", "new\r\neth0")
	n.write("10.9.0.3", "")
	now := time.Now()
	for _, name := range []string{"10.9.0.2", "10.9.0.3"} {
		require.NoError(t, os.Chtimes(n.path(name), now, now))
	}
	require.NoError(t, n.store().Apply(t.Context()))
	require.Equal(t, []string{"10.9.0.2", "10.9.0.3"}, n.names())
	require.Zero(t, n.asked)
	s := n.store()
	s = hostlocal.OfAnyAge(s)
	require.NoError(t, s.Apply(t.Context()))
	require.Equal(t, []string{"10.9.0.3.corrupt"}, n.names())

	// Released and reserved again between the check and the lock.
	n.write("10.9.0.2", "gone\r\neth0")
	s.Sandboxes = func(context.Context) ([]string, error) {
		n.write("10.9.0.2", "new\r\neth0")
		return nil, nil
	}
	require.NoError(t, s.Apply(t.Context()))
	require.Contains(t, n.names(), "10.9.0.2")
}

func TestRDY4_NothingIsReleasedUnlessTheRuntimeAnswers(t *testing.T) {
	n := newNode(t)
	n.write("10.9.0.2", "gone\r\neth0")
	s := n.store()
	silent := errors.New("connection refused")
	s.Sandboxes = func(context.Context) ([]string, error) { return []string{"other"}, silent }
	_, err := s.Check(t.Context())
	require.ErrorIs(t, err, silent)
	require.ErrorContains(t, err, "determine which addresses are in use: ")
	require.ErrorIs(t, s.Apply(t.Context()), silent)
	require.Equal(t, []string{"10.9.0.2"}, n.names())
}

// While host-local reserves an address, none is released, and vice versa.
func TestRDY4_TheLockIsHostLocals(t *testing.T) {
	needHostLocal(t)
	n := newNode(t)
	n.write("10.9.0.2", "gone\r\neth0")
	lock, err := os.OpenFile(n.path("lock"), os.O_RDONLY|os.O_CREATE, 0o750)
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	waits := make(chan string, 1)
	plan := bootstrap.Plan{
		Steps: []bootstrap.Step{{Name: "addresses", Action: n.store()}},
		Trace: &bootstrap.Trace{Waiting: func(_ context.Context, _, what string, _ time.Duration) { waits <- what }},
	}
	done := make(chan error, 1)
	go func() {
		_, err := plan.Apply(t.Context())
		done <- err
	}()
	require.Equal(t, "host-local's lock "+n.path("lock"), <-waits)
	require.Equal(t, []string{"10.9.0.2"}, n.names())
	added := make(chan error, 1)
	go func() {
		_, err := n.plugin("ADD", "new")
		added <- err
	}()
	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_UN))
	require.NoError(t, <-done)
	require.NoError(t, <-added)
	content, err := os.ReadFile(n.path("10.9.0.2"))
	if err == nil { // host-local came second, and took the released address
		require.Contains(t, string(content), "new")
	}

	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	n.write("10.9.0.2", "gone\r\neth0")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = n.store().Apply(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, n.path("lock"))
}

func TestRDY4_ReleasingAddressesConformsToAnAction(t *testing.T) {
	n := newNode(t)
	n.write("10.9.0.2", "gone\r\neth0")
	n.write("10.9.0.3", "")
	bootstraptest.Conform(t, func() bootstrap.Action { return n.store() }, func() map[string]string {
		state := map[string]string{}
		for _, name := range n.names() {
			state[name] = "there"
		}
		return state
	})
	empty := newNode(t)
	changes, err := empty.store().Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, changes)
	require.NoError(t, empty.store().Apply(t.Context()))
	entries, err := os.ReadDir(empty.data)
	require.NoError(t, err)
	require.Empty(t, entries, "without addresses to release no file is made")
}

// A user who can write in the store's directory cannot make other files disappear.
func TestSEC1_LinksInTheStoreAreNotFollowed(t *testing.T) {
	n := newNode(t)
	elsewhere := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(elsewhere, []byte("gone\r\neth0"), 0o644))
	require.NoError(t, os.MkdirAll(n.path(""), 0o755))
	require.NoError(t, os.Symlink(elsewhere, n.path("10.9.0.2")))
	require.NoError(t, unix.Mkfifo(n.path("10.9.0.3"), 0o600))
	require.NoError(t, os.Symlink(elsewhere, n.path("lock")))
	s := n.store()
	s = hostlocal.OfAnyAge(s)
	require.ErrorContains(t, s.Apply(t.Context()), "not a regular file")
	require.NoError(t, os.Remove(n.path("lock")))
	require.NoError(t, s.Apply(t.Context()))
	require.True(t, slices.Equal([]string{"10.9.0.2.corrupt", "10.9.0.3.corrupt"}, n.names()))
	require.FileExists(t, elsewhere)
}

// A directory in the place of a file is moved aside. What cannot be is an error each time; the other
// addresses are released nevertheless.
func TestRDY4_ADirectoryIsMovedAside(t *testing.T) {
	n := newNode(t)
	n.write("10.9.0.3", "") // to be moved to where a directory is
	for _, dir := range []string{"10.9.0.2", "10.9.0.3.corrupt"} {
		require.NoError(t, os.MkdirAll(n.path(dir+"/full"), 0o755))
	}
	n.age("10.9.0.2")
	for range 2 {
		n.write("10.9.0.4", "gone\r\neth0")
		err := n.store().Apply(t.Context())
		require.ErrorContains(t, err, "release the address 10.9.0.3: ")
		require.NotContains(t, err.Error(), "10.9.0.2")
		require.Equal(t, []string{"10.9.0.2.corrupt", "10.9.0.3", "10.9.0.3.corrupt"}, n.names())
		require.DirExists(t, n.path("10.9.0.2.corrupt/full"))
	}
}

// The clock was set forward by an hour after boot: a sandbox that was being made just before
// does not count as old, and keeps its address.
func TestRDY4_AClockThatWasSetForward(t *testing.T) {
	testns.Enter(t, testns.Mount)
	n := newNode(t)
	const jump = time.Hour
	now := time.Now()
	var up unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &up))
	boot := now.Add(-jump - time.Duration(up.Nano()))
	null := filepath.Join(n.data, "null")
	require.NoError(t, os.WriteFile(null, nil, 0o600))
	require.NoError(t, os.Chtimes(null, boot, boot))
	require.NoError(t, unix.Mount(null, "/dev/null", "", unix.MS_BIND, ""))
	for name, written := range map[string]time.Time{
		"10.9.0.2": now.Add(-jump - time.Minute),    // a minute ago
		"10.9.0.3": now.Add(-jump - 20*time.Minute), // 20 minutes ago
		"10.9.0.4": now.Add(-time.Minute),           // a minute ago by the new clock
		"10.9.0.5": now.Add(-20 * time.Minute),
		"10.9.0.6": boot.Add(-time.Hour), // before boot
	} {
		n.write(name, "gone\r\neth0")
		require.NoError(t, os.Chtimes(n.path(name), written, written))
	}
	require.NoError(t, n.store().Apply(t.Context()))
	require.Equal(t, []string{"10.9.0.2", "10.9.0.4"}, n.names())
}
