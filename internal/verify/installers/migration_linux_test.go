// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package installers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/installers"
)

// migration is an agent whose installer is replaced by one that uses our packages.
type migration struct {
	old   installers.Installation
	image []installers.File // of the new one
	plan  func(installers.Setting) (p *bootstrap.Plan, done func() error, err error)

	adopted []string // objects that existed as wanted, and belong to the new one if it adopts them
	left    []left
	gone    []string // objects that must never come back: credentials
}

// left are the old installer's objects that the uninstall leaves, as a snapshot reports
// the difference to the node before.
type left struct {
	why   string
	lines []string
}

// Why something of the old installer's stays.
const (
	restored  = "the new installer has replaced it, so that undoing brings back the earlier one"
	reference = "a reference plugin belongs to no particular agent"
	unlisted  = "the new installer's plan does not name it"
	there     = "a folder, a mount and a value that existed belong to no particular agent"
)

func added(paths ...string) (lines []string) {
	for _, path := range paths {
		lines = append(lines, "new: "+path)
	}
	return lines
}

// inBin returns plugins as named in a snapshot.
func inBin(names ...string) (files []string) {
	for _, name := range names {
		files = append(files, "file "+bin+"/"+name)
	}
	return files
}

func migrations() map[string]migration {
	return map[string]migration{
		"cilium": {
			old: installers.OldCilium(), image: installers.NewCiliumImage(),
			plan: func(s installers.Setting) (*bootstrap.Plan, func() error, error) {
				return installers.Cilium{Setting: s}.Plan()
			},
			left: []left{
				{restored, added("file "+conf+"/05-cilium.conflist", "file /etc/sysctl.d/99-zzz-override_cilium.conf", "file "+bin+"/cilium-cni")},
				{reference, added(inBin("loopback")...)},
				{there, append(added("file /run/cilium", "file /run/cilium/cgroupv2", "file /run/netns", "mount /run/cilium/cgroupv2 #1", "mount /sys/fs/bpf #1"),
					"changed: sysctl /proc/sys/net/ipv4/conf/all/rp_filter: was 2, is 0")},
				{unlisted, append(added("file "+conf+"/87-other.conflist.cilium_bak"), "gone: file "+conf+"/87-other.conflist")},
			},
		},
		"aws": {
			old: installers.OldAWS(), image: installers.NewAWSImage(),
			plan: func(s installers.Setting) (*bootstrap.Plan, func() error, error) {
				return installers.AWS{Setting: s}.Plan(context.Background())
			},
			adopted: added("file " + conf + "/10-aws.conflist"),
			left: []left{
				{restored, added(inBin("aws-cni", "egress-cni", "aws-cni-support.sh")...)},
				{reference, added(inBin("bandwidth", "bridge", "dhcp", "dummy", "firewall", "host-device", "host-local", "ipvlan", "loopback",
					"macvlan", "portmap", "ptp", "sbr", "static", "tap", "tuning", "vlan", "vrf")...)},
				{there, append(added("file /run/aws-node", "file /var/log/aws-routed-eni", "file /run/xtables.lock"),
					"changed: sysctl /proc/sys/net/ipv4/conf/eth0/rp_filter: was 1, is 2", "changed: sysctl /proc/sys/net/ipv4/tcp_early_demux: was 0, is 1")},
				{unlisted, added(inBin("LICENSE", "egress-v4-cni")...)},
			},
		},
		"calico": {
			old: installers.OldCalico(), image: installers.NewCalicoImage(),
			plan: func(s installers.Setting) (*bootstrap.Plan, func() error, error) {
				s.Env = map[string]string{"CNI_NETWORK_CONFIG": installers.CalicoManifestConf, "CNI_MTU": "0", "KUBERNETES_NODE_NAME": "my-node"}
				return installers.Calico{Setting: s, Token: "fresh of " + s.Owner, CA: "ca"}.Plan(context.Background())
			},
			adopted: added(append(inBin("flannel"), "file "+conf+"/10-calico.conflist", "file "+conf+"/calico-tls/etcd-ca")...),
			left: []left{
				{restored, added(inBin("calico", "calico-ipam")...)},
				{reference, added(inBin("host-local", "loopback", "portmap", "tuning")...)},
				{there, added("file "+conf+"/calico-tls", "file /run/calico", "file /run/calico/cgroup", "file /run/nodeagent", "file /run/xtables.lock",
					"file /var/lib/calico", "file /var/log/calico", "file /var/log/calico/cni", "mount /run/calico/cgroup #1", "mount /sys/fs/bpf #1")},
			},
			gone: []string{conf + "/calico-kubeconfig", conf + "/calico-tls/etcd-cert", conf + "/calico-tls/etcd-key"},
		},
	}
}

// The environment makes the test binary the new installer of an agent, and names the
// agent, its verb, its image and its pod. Its main thread does all the work.
const (
	agentEnv = "SLIPWAY_TEST_INSTALLER"
	verbEnv  = "SLIPWAY_TEST_INSTALLER_VERB"
	imageEnv = "SLIPWAY_TEST_INSTALLER_IMAGE"
	ownerEnv = "SLIPWAY_TEST_INSTALLER_OWNER"
	adoptEnv = "SLIPWAY_TEST_INSTALLER_ADOPT"
)

func init() {
	if agent := os.Getenv(agentEnv); agent != "" {
		runtime.LockOSThread()
		if err := install(migrations()[agent], os.Getenv(verbEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// The verbs of the new installer.
const (
	apply     = "apply"
	uninstall = "uninstall"
)

func install(m migration, verb string) error {
	ctx := context.Background()
	p, done, err := m.plan(installers.Setting{Image: os.Getenv(imageEnv), Owner: os.Getenv(ownerEnv), Adopt: os.Getenv(adoptEnv) != ""})
	if err != nil {
		return err
	}
	if verb == uninstall {
		_, err = p.RevertAll(ctx)
		return errors.Join(err, done())
	}
	if _, err = p.Apply(ctx); err == nil {
		err = converged(p.Check(ctx))
	}
	return errors.Join(err, done())
}

// converged returns an error if there is still something to do.
func converged(r *bootstrap.Report, err error) error {
	for _, result := range r.Results {
		if len(result.Changes) > 0 {
			err = errors.Join(err, fmt.Errorf("%s has still to: %s", result.Step, strings.Join(result.Changes, ", ")))
		}
	}
	return err
}

// stand is a throw-away node on which an agent's installers take turns.
type stand struct {
	*bootstraptest.Node
	migration
	t            *testing.T
	agent, image string
	adopts       bool
	before, laid snapshot.Snapshot // before the old installer came, and after
}

func newStand(t *testing.T, agent string, adopts bool) *stand {
	t.Helper()
	s := &stand{Node: bootstraptest.NewNode(t), migration: migrations()[agent], t: t, agent: agent, image: t.TempDir(), adopts: adopts}
	image(t, s.image, s.migration.image)
	s.do(others)
	s.before = s.state()
	return s
}

// others makes the initial objects of the node: another CNI, a link, and values that an
// administrator has set.
func others() error {
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "eth1"}
	errs := []error{
		netlink.LinkAdd(link),
		os.MkdirAll(conf, 0o755), os.MkdirAll(bin, 0o755), os.MkdirAll("/etc/sysctl.d", 0o755), os.MkdirAll("/var/lib", 0o755), os.MkdirAll("/var/log", 0o755),
		os.WriteFile(conf+"/87-other.conflist", []byte(`{"cniVersion":"0.4.0","name":"other","plugins":[{"type":"other-cni"}]}`), 0o644),
		os.WriteFile(bin+"/other-cni", []byte("#!/bin/sh\necho '{\"cniVersion\":\"0.4.0\",\"supportedVersions\":[\"0.4.0\"]}'\n"), 0o755),
	}
	for key, value := range map[string]string{"all/rp_filter": "2", "eth0/rp_filter": "1"} {
		errs = append(errs, os.WriteFile("/proc/sys/net/ipv4/conf/"+key, []byte(value), 0))
	}
	return errors.Join(append(errs, os.WriteFile("/proc/sys/net/ipv4/tcp_early_demux", []byte("0"), 0))...)
}

func (s *stand) do(f func() error) {
	s.t.Helper()
	require.NoError(s.t, s.Do(s.t.Context(), func(context.Context) error { return f() }))
}

// oldInstalls is the old installer's turn: the first, or a rollback's.
func (s *stand) oldInstalls() {
	s.t.Helper()
	s.do(s.old.Lay)
	if s.laid == nil {
		s.laid = s.state()
	}
}

// state describes the node, without the lock file.
func (s *stand) state() snapshot.Snapshot {
	s.t.Helper()
	seen := snapshot.Snapshot{}
	s.do(seen.Node)
	delete(seen, "file /run/slipway.lock")
	seen.DropSources()
	return seen
}

// environment makes the test binary the new installer.
func (s *stand) environment(t turn) []string {
	env := append(os.Environ(), agentEnv+"="+s.agent, verbEnv+"="+t.verb, imageEnv+"="+s.image, ownerEnv+"="+t.owner, "GOMAXPROCS=1")
	if s.adopts {
		env = append(env, adoptEnv+"=1")
	}
	return env
}

// turn is a turn of the new installer: its verb and its pod.
type turn struct{ verb, owner string }

// turns returns the turns of a migration, with the old installer's before each apply.
var turns = []turn{{apply, "first"}, {apply, "second"}, {uninstall, "second"}}

// comes runs the old installer's turn before a turn.
func (s *stand) comes(t turn) {
	s.t.Helper()
	if t.verb == apply {
		s.oldInstalls()
	}
}

// play plays a turn to its end.
func (s *stand) play(t turn) {
	s.t.Helper()
	cmd := s.Command(os.Args[0])
	cmd.Env = s.environment(t)
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s: %s", t.verb, out)
}

// A node goes from the old installer to the new one, back, and to the new one again, which
// is then uninstalled.
func TestPLAN6_PLAN15_Migration(t *testing.T) {
	testns.Root(t)
	for agent := range migrations() {
		for _, adopts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, adopts: %t", agent, adopts), func(t *testing.T) {
				s := newStand(t, agent, adopts)
				for _, turn := range turns {
					s.comes(turn)
					s.play(turn)
				}
				s.isUninstalled()
			})
		}
	}
}

// isUninstalled compares the node with its state before the old installer came: the
// remaining objects are expected ones, as the old installer has left them.
func (s *stand) isUninstalled() {
	s.t.Helper()
	after := s.state()
	var expected []string
	for _, l := range s.left {
		expected = append(expected, l.lines...)
	}
	if !s.adopts {
		expected = append(expected, s.adopted...)
	}
	require.ElementsMatch(s.t, expected, s.before.Diff(after))
	for object, state := range after {
		require.True(s.t, s.laid[object] == state || s.before[object] == state, "%s is neither as the old installer left it nor as before: %s", object, state)
	}
	for _, path := range s.gone {
		require.NotContains(s.t, after, "file "+path)
	}
}
