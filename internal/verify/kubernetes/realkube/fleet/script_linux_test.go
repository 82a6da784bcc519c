// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// fault is a way to break a node, and the repair that the remedy tells a person to make.
type fault struct {
	code  string
	found string   // breaks the installed node
	flags []string // of an apply that breaks it

	mend      string   // script; LINE is the line that the message names
	mendFlags []string // of the next apply
	keep      []string // of each later apply
	end       string   // removes the fault itself, after the uninstall
}

// faults are in the order in which nodes are broken: with few nodes, only the first are used.
var faults = []fault{{
	code:  "sysctl.directory-read-only",
	found: "rm /etc/sysctl.d/*; mount --bind /etc/sysctl.d /etc/sysctl.d; mount -o remount,bind,ro /etc/sysctl.d",
	keep:  []string{"--sysctl-conf-dir", "/run/sysctl.d"},
	end:   "umount /etc/sysctl.d",
}, {
	code:  "bpffs.foreign",
	found: "mount -t tmpfs none /sys/fs/bpf",
	mend:  "umount /sys/fs/bpf",
}, {
	code:      "journal.not-owner",
	found:     "nodeinit apply --only bpffs --owner stranger",
	mendFlags: []string{"--take-over"},
}, {
	code:  "sysctl.key-missing",
	flags: []string{"--sysctl", "net.ipv4.no_such_key=1"},
}, {
	code:  "journal.unreadable",
	found: "sed -i 's/mount/mouse/' /var/lib/slipway/cilium.journal",
	mend:  `cp -a /var/lib/slipway /run/copy; sed -i LINEq /var/lib/slipway/cilium.journal; nodeinit status --output json | sed -n 's/.*"remove": "\(.*\)".*/\1/p' | sh -ex`,
	end:   "rm -r /run/copy; echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter", // its record is cut off
}}

// member is a throw-away node with its Node object.
type member struct {
	*bootstraptest.Node
	name   string
	path   string // PATH, with nodeinit
	before snapshot.Snapshot
	flags  []string // of its applies, besides the common ones
	end    string
}

// shell runs a script on the node.
func (m *member) shell(script string) error {
	if script == "" {
		return nil
	}
	cmd := m.Command("sh", "-euc", script)
	cmd.Env = []string{"PATH=" + m.path}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %s: %w: %s", m.name, script, err, &out)
	}
	return nil
}

// state is everything nodeinit may change, except its own records.
func (m *member) state(ctx context.Context) (snapshot.Snapshot, error) {
	s := snapshot.Snapshot{}
	err := m.Do(ctx, func(context.Context) error { return s.Node() })
	delete(s, "file /run/slipway.lock") // it stays
	delete(s, "file /run/mount")        // mount(8)'s own
	s.DropSources()
	return s, err
}

// reach makes the API server reachable on the node at its address on the machine.
func (m *member) reach(t *testing.T, address string) {
	t.Helper()
	var l net.Listener
	require.NoError(t, m.Do(t.Context(), func(context.Context) (err error) {
		l, err = net.Listen("tcp", address)
		return err
	}))
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			here, err := l.Accept()
			if err != nil {
				return
			}
			go forward(here, address)
		}
	}()
}

func forward(here net.Conn, address string) {
	defer here.Close()
	there, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer there.Close()
	go func() {
		_, _ = io.Copy(there, here)
		there.Close()
	}()
	_, _ = io.Copy(here, there)
}

// session is a person's terminal.
type session struct {
	*testing.T
	kubeconfig, nodeinit, fleet string
	members                     []*member
}

func newSession(t *testing.T, nodes int) *session {
	t.Helper()
	s, err := realkube.Start(context.WithoutCancel(t.Context()), realkube.Options{NoAudit: true, Log: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	p := &session{T: t}
	p.kubeconfig, err = s.Kubeconfig(t.TempDir(), realkube.Admin, "")
	require.NoError(t, err)
	p.nodeinit, err = programs.Program{Package: "./examples/nodeinit"}.Build(t.Context())
	require.NoError(t, err)
	p.fleet, err = programs.Program{Package: "./examples/fleet"}.Build(t.Context())
	require.NoError(t, err)
	for i := range nodes {
		m := &member{Node: bootstraptest.NewNode(t), name: fmt.Sprintf("node-%02d", i+1), path: filepath.Dir(p.nodeinit) + ":" + os.Getenv("PATH")}
		require.NoError(t, s.Admin().Create(t.Context(), "/api/v1/nodes", fields{"metadata": fields{"name": m.name}}))
		m.reach(t, strings.TrimPrefix(s.URL, "https://"))
		require.NoError(t, m.shell("mkdir -p /etc/sysctl.d; echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter"))
		m.before, err = m.state(t.Context())
		require.NoError(t, err)
		p.members = append(p.members, m)
	}
	return p
}

// each runs a nodeinit command on nodes, a few at a time, and counts the runs by exit status.
func (p *session) each(members []*member, command string, flags ...string) (statuses map[int]int) {
	p.Helper()
	codes := make([]int, len(members))
	require.NoError(p, parallel(len(members), func(i int) error {
		m := members[i]
		args := append([]string{command, "--report-node", "--node-name", m.name, "--k8s-kubeconfig-path", p.kubeconfig}, flags...)
		if command == "apply" {
			args = append(args, m.flags...)
		}
		cmd := m.Command(p.nodeinit, args...)
		cmd.Env = []string{"PATH=" + m.path}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		if err != nil && !errors.As(err, new(*exec.ExitError)) {
			return err
		}
		codes[i] = cmd.ProcessState.ExitCode()
		if strings.Contains(out.String(), "not reported") || command != "apply" && err != nil {
			return fmt.Errorf("%s: %s: %s", m.name, command, &out)
		}
		return nil
	}))
	statuses = map[int]int{}
	for _, code := range codes {
		statuses[code]++
	}
	where := fmt.Sprintf("on each of %d nodes", len(members))
	if len(members) == 1 {
		where = "on " + members[0].name
		flags = append(slices.Clone(flags), members[0].flags...)
	}
	p.Logf("%s $ nodeinit %s --report-node %s\n%s", where, command, strings.Join(flags, " "), said(statuses))
	return statuses
}

func said(statuses map[int]int) (text string) {
	for _, code := range slices.Sorted(maps.Keys(statuses)) {
		text += fmt.Sprintf("    exit status %d: %d\n", code, statuses[code])
	}
	return text
}

// ask runs fleet, and returns its output and exit status.
func (p *session) ask(args ...string) (string, int) {
	p.Helper()
	cmd := exec.Command(p.fleet, append([]string{"--kubeconfig", p.kubeconfig}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.ErrorAs(p, err, new(*exec.ExitError))
	}
	return string(out), cmd.ProcessState.ExitCode()
}

var indent = regexp.MustCompile(`(?m)^(.)`)

// read is ask, for output meant for a person.
func (p *session) read(args ...string) (string, int) {
	p.Helper()
	text, code := p.ask(args...)
	p.Logf("$ %s\n%s    exit status %d\n", strings.Join(append([]string{"fleet"}, args...), " "), indent.ReplaceAllString(text, "    $1"), code)
	return text, code
}

// well requires that fleet reports every node as well.
func (p *session) well() {
	p.Helper()
	text, code := p.read()
	require.Zero(p, code, text)
	require.Equal(p, fmt.Sprintf("%d nodes: %d ready\n", len(p.members), len(p.members)), text)
}

// broken returns the broken nodes by code, as fleet lists them.
func (p *session) broken() map[string][]string {
	p.Helper()
	text, code := p.ask("--output", "json")
	require.Equal(p, 2, code, text)
	var f struct {
		Groups []struct {
			Code  string
			Nodes []string
		}
	}
	require.NoError(p, json.Unmarshal([]byte(text), &f))
	found := map[string][]string{}
	for _, g := range f.Groups {
		found[g.Code] = append(found[g.Code], g.Nodes...)
	}
	return found
}

// damage breaks the last nodes, each in a different way.
func (p *session) damage(faults []fault) {
	p.Helper()
	for i, f := range faults {
		m := p.members[len(p.members)-1-i]
		require.NoError(p, m.shell(f.found))
		m.flags, m.end = f.flags, f.end
		if len(f.flags) > 0 {
			p.Logf("on %s, flags from now on: %s", m.name, strings.Join(f.flags, " "))
		} else {
			p.Logf("on %s $ %s", m.name, f.found)
		}
	}
}

// cutAfter finds the last line of a damaged journal to keep.
var cutAfter = regexp.MustCompile(`then cut the file after line (\d+),`)

// mend asks fleet why a node is broken, and follows the remedy.
func (p *session) mend(name string, f fault, install []string) {
	p.Helper()
	text, code := p.read("--why", name)
	require.Equal(p, 2, code)
	cause, remedy := bootstrap.Meaning(f.code)
	plain := strings.Join(strings.Fields(text), " ")
	for _, part := range []string{"code " + f.code, "cause " + cause, "remedy " + remedy} {
		require.Contains(p, plain, part)
	}
	require.NotContains(p, plain, "...", "the message is whole: it names the flags")
	m := p.members[slices.IndexFunc(p.members, func(m *member) bool { return m.name == name })]
	if f.mend != "" {
		script := f.mend
		if line := cutAfter.FindStringSubmatch(plain); line != nil {
			script = strings.Replace(script, "LINE", line[1], 1)
		}
		require.NoError(p, m.shell(script))
		p.Logf("on %s $ %s", name, script)
	}
	m.flags = f.keep
	require.Equal(p, map[int]int{0: 1}, p.each([]*member{m}, "apply", append(slices.Clone(install), f.mendFlags...)...))
}

// states describes all nodes, without nodeinit's records.
func (p *session) states() (all []snapshot.Snapshot) {
	p.Helper()
	for _, m := range p.members {
		s, err := m.state(p.Context())
		require.NoError(p, err)
		maps.DeleteFunc(s, func(object, _ string) bool { return strings.HasPrefix(object, "file /var/lib/slipway") })
		all = append(all, s)
	}
	return all
}

// Using fleet alone, a person installs, finds the broken nodes and the causes, repairs them
// with the remedies given, upgrades, and uninstalls; every node is then as before.
func TestRDY6_APersonsScript(t *testing.T) {
	testns.Root(t)
	nodes, faults := 40, faults
	if testing.Short() {
		nodes, faults = 8, faults[:3]
	}
	p := newSession(t, nodes)
	text, code := p.read()
	require.Equal(t, 2, code, text)

	install := []string{"--only", "cgroup,sysctl,bpffs", "--owner", "release-1"}
	require.Equal(t, map[int]int{0: nodes}, p.each(p.members, "apply", install...))
	p.well()

	p.damage(faults)
	statuses := p.each(p.members, "apply", install...)
	require.Equal(t, nodes-len(faults), statuses[0], statuses)
	text, code = p.read()
	require.Equal(t, 2, code, text)
	require.Contains(t, text, fmt.Sprintf("%d nodes: %d ready, %d failed\n", nodes, nodes-len(faults), len(faults)))
	found := p.broken()
	require.Len(t, found, len(faults))
	for _, f := range faults {
		require.Len(t, found[f.code], 1, "%s: %v", f.code, found)
		p.mend(found[f.code][0], f, install)
	}
	p.well()

	was := p.states()
	upgrade := []string{"--only", "cgroup,sysctl,bpffs", "--owner", "release-2"}
	require.Equal(t, map[int]int{0: nodes}, p.each(p.members, "apply", upgrade...))
	for i, s := range p.states() {
		require.Empty(t, was[i].Diff(s), "the upgrade changes nothing on %s", p.members[i].name)
	}
	p.well()

	require.Equal(t, map[int]int{0: nodes}, p.each(p.members, "uninstall", "--owner", "release-2"))
	text, code = p.read()
	require.Equal(t, 2, code)
	require.Contains(t, text, fmt.Sprintf("%d nodes: %d no report\n", nodes, nodes))
	for _, m := range p.members {
		require.NoError(t, m.shell(m.end))
		after, err := m.state(t.Context())
		require.NoError(t, err)
		require.Empty(t, m.before.Diff(after), m.name)
	}
	t.Logf("%d nodes are as before", nodes)
}
