// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestPLAN10_FlagOverEnvironmentOverFile(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir /run/flag /run/env /run/older /run/file")
	n.write("/run/config.yaml", "bpf-root: /run/file\ncgroup-root: /run/file\nsource: [\"env:A_\", \"env:B_\"]\n")
	env := []string{"SLIPWAY_BPF_ROOT=/run/env", "CGROUP_ROOT=/run/older"}

	for says, args := range map[string][]string{
		"mount bpf on /run/flag":      {"mount-bpffs", "--config", "/run/config.yaml", "--bpf-root", "/run/flag"},
		"mount bpf on /run/env":       {"mount-bpffs", "--config", "/run/config.yaml"},
		"mount cgroup2 on /run/older": {"mount-cgroup", "--config", "/run/config.yaml"},
	} {
		require.Contains(t, n.okEnv(env, args...).stdout, says)
	}
	require.Contains(t, n.ok("mount-bpffs", "--config", "/run/config.yaml").stdout, "mount bpf on /run/file")
	o := n.okEnv(append(env, "SLIPWAY_CONFIG=/run/config.yaml", "A_X=1", "B_X=2", "SLIPWAY_ONWER=x", "SLIPWAY_PORT=tcp://[::1]:1"), "build-config", "--dest", "/run/dest")
	require.Equal(t, 1, strings.Count(o.stderr, "has no meaning"), o.stderr)
	require.Contains(t, o.stderr, "environment variable SLIPWAY_ONWER has no meaning: did you mean SLIPWAY_OWNER?")
	require.Equal(t, "2", n.read("/run/dest/x"))
}

// In a rolling update, the older pod's uninstall comes after the newer one's apply.
func TestCNI8_AnOlderOwnersUninstallLeavesTheWholeNodeAlone(t *testing.T) {
	n := newParallelNode(t)
	defer n.asItWas()()
	n.okEnv([]string{"POD_UID=older"}, n.args("apply")...)
	n.okEnv([]string{"POD_UID=newer"}, n.args("apply")...)
	applied := n.state()
	for _, args := range [][]string{{"uninstall", "--dry-run", "--output", "json"}, {"uninstall", "--output", "json"}, {"uninstall"}} {
		o := n.exitsEnv(3, []string{"POD_UID=older"}, args...)
		require.Contains(t, o.stderr, "nothing is changed")
		require.Contains(t, o.stdout, "not-run")
		require.Empty(t, applied.Diff(n.state()))
	}
	n.okEnv([]string{"POD_UID=newer"}, "uninstall")
}

func TestListsInTheFileAndTheEnvironmentKeepTheirParts(t *testing.T) {
	n := newParallelNode(t)
	n.write("/run/config.yaml", "sysctl: [net.ipv4.ip_forward=1, 'net.ipv4.tcp_rmem=4096 131072 6291456']\nowner: 0123\n")
	want := "net.ipv4.ip_forward = 1\nnet.ipv4.tcp_rmem = 4096 131072 6291456\n"
	n.ok("apply", "--only", "sysctl", "--config", "/run/config.yaml")
	require.Contains(t, n.read("/etc/sysctl.d/99-zzz-override_cilium.conf"), want)
	require.Contains(t, n.read("/var/lib/slipway/ledger"), `"0123"`)

	n.okEnv([]string{"SLIPWAY_SYSCTL=net.ipv4.ip_forward=0\nnet.ipv4.tcp_rmem=4096 131072 6291456"}, "apply", "--only", "sysctl")
	require.Equal(t, "0\n", n.read("/proc/sys/net/ipv4/ip_forward"))
}

func TestCLN8_CleanupWithinApplyConverges(t *testing.T) {
	n := newParallelNode(t)
	apply := n.args("apply", "--output", "json")
	for _, env := range [][]string{{"CILIUM_ALL_STATE=true"}, nil} {
		n.shell("mkdir -p /run/cilium/state && touch /run/cilium/state/old && ip link add lxc_health type veth peer name cilium_test || true")
		if env == nil { // the configuration asks for it
			require.NoError(t, os.WriteFile(n.source, []byte("clean-cilium-state: \"true\"\n"), 0o644))
		}
		require.Equal(t, "changed", n.okEnv(env, apply...).report(t).statuses()["cleanup"], env)
		n.shell("test ! -e /run/cilium/state")
		require.Empty(t, n.shell("ip -br link show | grep -E 'lxc|cilium' || true"))
		require.Equal(t, each("unchanged"), n.okEnv(env, apply...).report(t).statuses(), env)
	}
}

// annotated is an API server on the node, with its Node.
func (n *node) annotated(annotations string) (url string) {
	n.t.Helper()
	return "http://" + n.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"node1","annotations":%s}}`, annotations)
	}))
}

// A ConfigMap made of files has a newline at the end of each value, which is no part of a
// path; the agent gets it as it is.
func TestCFG12_BlanksAroundAValueThatIsInterpretedDoNotCount(t *testing.T) {
	n := newParallelNode(t)
	n.write("/run/config.yaml", "bpf-root: \"/run/bpf\\n\"\nwait-loaded: \" 0s \"\nplugins: [\""+n.plugins+"\\n\"]\n")
	n.write("/run/source.yaml", "cgroup-root: \"/run/cg\\n\"\nmtu: \"9000\\n\"\nkube-proxy-replacement: \"true\\n\"\n")
	o := n.runEnv([]string{"SLIPWAY_TIMEOUT= 60s\n", "SLIPWAY_SYSCTL_CONF_DIR=/run/sysctl.d\n", "SLIPWAY_ONLY=config,cgroup,bpffs,sysctl\n", "SLIPWAY_AGENT=\n"},
		"apply", "--config", "/run/config.yaml", "--source=file:/run/source.yaml\n", "--dest", "/run/dest\n", "--cgroup-root-key=cgroup-root\n", "--wait-for-kube-proxy=1h\n", "--output=json\n")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "skipped", o.report(t).statuses()["kube-proxy"])
	require.Equal(t, "9000\n", n.read("/run/dest/mtu"))
	require.Equal(t, "/run/bpf /run/cg", n.shell("grep -oE ' /run/(bpf|cg) ' /proc/mounts | sort | xargs"))
	require.Equal(t, "/run/sysctl.d/99-zzz-override_cilium.conf", n.shell("ls /run/sysctl.d/*"))
	o = n.run("run", "--only", " bpffs, cgroup ", "--bpf-root= /run/bpf", "--drop-capabilities", "CHOWN, SYS_BOOT", "--", "printf", "%s", " kept\n")
	require.Equal(t, " kept\n", o.stdout, o.stderr)
}

// What asks for a removal in another spelling removes nothing, and the report names it.
func TestCLN10_OnlyTrueDestroysAndAnythingElseIsNamed(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /run/cilium/state && touch /run/cilium/state/precious")
	for name, c := range map[string]struct {
		env, source string
		named       string // empty: nothing is
	}{
		"a newline":            {"X=", "clean-cilium-state: \"true\\n\"\n", `clean-cilium-state = "true\n": only "true" counts`},
		"in capitals":          {"CILIUM_ALL_STATE=True", "mtu: 1\n", `CILIUM_ALL_STATE = "True": only "true" counts`},
		"a number":             {"CLEAN_CILIUM_BPF_STATE=1", "mtu: 1\n", `CLEAN_CILIUM_BPF_STATE = "1": only "true" counts`},
		"false, and a newline": {"X=", "clean-cilium-state: \"false\\n\"\n", ""},
		"false":                {"CILIUM_ALL_STATE=false", "clean-cilium-bpf-state: false\n", ""},
		"empty":                {"CILIUM_ALL_STATE=", "clean-cilium-bpf-state: ''\n", ""},
		"beside one of two":    {"CILIUM_BPF_STATE=true", "clean-cilium-state: yes\n", `clean-cilium-state = "yes": only "true" counts`},
	} {
		require.NoError(t, os.WriteFile(n.source, []byte(c.source), 0o644))
		o := n.okEnv([]string{c.env}, "apply", "--only", "config,cleanup", "--source", "file:"+n.source, "--dest", "/run/dest", "--output", "json")
		require.Equal(t, "precious", n.shell("ls /run/cilium/state"), name)
		for _, r := range o.report(t).Results {
			if said := strings.Join(append(r.Advice, r.Reason), "; "); r.Step == "cleanup" && c.named != "" {
				require.Contains(t, said, "ignored: "+c.named, name)
			} else {
				require.NotContains(t, said, "ignored", name)
			}
		}
	}
	o := n.okEnv([]string{"CILIUM_ALL_STATE=yes"}, "cleanup", "-f")
	require.Contains(t, o.stderr, `nothing is selected, so nothing is removed: `)
	require.Contains(t, o.stderr, `ignored: CILIUM_ALL_STATE = "yes": only "true" counts`)
}

// More people may annotate a Node than may destroy a node's state.
func TestCLN10_ANodesAnnotationDestroysNothing(t *testing.T) {
	n := newParallelNode(t)
	server := n.annotated(`{"config.cilium.io/clean-cilium-state":"true","config.cilium.io/clean-cilium-bpf-state":"true","config.cilium.io/mtu":"9000"}`)
	n.shell("mkdir -p /run/cilium/state && touch /run/cilium/state/precious")
	apply := func(sources ...string) outcome {
		args := []string{"apply", "--dest", "/run/agent-config", "--output", "json", "--only", "config,cleanup", "--k8s-api-server-urls", server, "--node-name", "node1"}
		return n.ok(append(args, sources...)...)
	}
	for _, sources := range [][]string{{"--source", "file:" + n.source, "--source", "node"}, {"--source", "node"}} {
		o := apply(sources...)
		require.Equal(t, "skipped", o.report(t).statuses()["cleanup"])
		require.Contains(t, o.stderr, "ignored: clean-cilium-state = true from node:node1 annotations: a key that destroys counts from")
		require.Contains(t, o.stderr, "ignored: clean-cilium-bpf-state = true from node:node1 annotations")
		require.Equal(t, "9000", n.read("/run/agent-config/mtu"), "the Node is heard about everything else")
		require.Equal(t, "precious", n.shell("ls /run/cilium/state"))
	}
	require.NoError(t, os.WriteFile(n.source, []byte("clean-cilium-state: \"true\"\n"), 0o644))
	o := apply("--source", "file:"+n.source, "--source", "node")
	require.NotContains(t, o.stderr, "ignored: clean-cilium-state ")
	require.Equal(t, "changed", o.report(t).statuses()["cleanup"])
	require.Equal(t, "gone", n.shell("test -e /run/cilium/state && echo there || echo gone"))
}

// What the flags would add to Cilium's state is found without them, too, and listed as left with
// the flag that removes it; what was asked for is not.
func TestCLN12_WhatWasNotAskedForIsListedAsLeftWithTheFlagThatRemovesIt(t *testing.T) {
	n := newParallelNode(t)
	n.shell("ip rule add pref 20 to 10.0.0.9 lookup main proto kernel; ip rule add pref 111 from 10.0.0.9 lookup 11 proto kernel; ip rule add pref 111 from 10.0.0.8 lookup 12 proto kernel; " +
		"ip rule add pref 1536 from 10.0.0.7 lookup 3; ip rule add pref 9 lookup 2004; ip link add eth7 type veth peer name eth8; ip link set eth7 up; ip link set eth8 up; " +
		"ip route add 10.9.0.2 dev eth7 scope link table 11 proto kernel; ip netns add cilium-health; ip netns add cni-12345678; " +
		"ip xfrm policy add src 0.0.0.0/0 dst 10.3.0.0/24 dir out mark 0xd00 mask 0xf00 tmpl src 10.0.0.1 dst 10.0.0.2 proto esp reqid 1 mode tunnel; " +
		"ip xfrm state allocspi src 10.0.0.1 dst 10.0.0.2 proto esp reqid 1 mode tunnel mark 0xd00 mask 0xf00 min 3 max 3")
	left := func(args ...string) (lines []string) {
		o := n.ok(append([]string{"cleanup", "--all-state"}, args...)...)
		_, list, _ := strings.Cut(o.stdout, "left as it is (")
		for line := range strings.Lines(list) {
			if strings.Contains(line, "not asked for") {
				lines = append(lines, regexp.MustCompile(` index \d+`).ReplaceAllString(strings.TrimSpace(line), ""))
			}
		}
		return lines
	}
	netns := "network namespace cilium-health  (not asked for: --netns removes it)"
	eni := func(tables string) string { return "  (not asked for: --eni-tables " + tables + " removes it)" }
	xfrm := []string{"xfrm policy out from 0.0.0.0/0 to 10.3.0.0/24  (not asked for: --xfrm removes it)", "xfrm state from 10.0.0.1 to 10.0.0.2 proto esp spi 0x3  (not asked for: --xfrm removes it)"}
	all := append([]string{
		"ip rule IPv4 20: to 10.0.0.9/32 lookup 254" + eni("11,12"), "ip rule IPv4 111: from 10.0.0.8/32 lookup 12" + eni("11,12"), "ip rule IPv4 111: from 10.0.0.9/32 lookup 11" + eni("11,12"),
		"route 10.9.0.2/32 dev eth7 table 11" + eni("11,12"), netns,
	}, xfrm...)
	require.ElementsMatch(t, all, left("--dry-run"))
	require.ElementsMatch(t, all, left("-f"))
	require.Contains(t, n.shell("ip netns; ip rule; ip xfrm policy"), "cilium-health", "they are left")
	require.Empty(t, left("--dry-run", "--netns", "--xfrm", "--eni-tables", "11,12"))
	require.ElementsMatch(t, append(xfrm, "ip rule IPv4 111: from 10.0.0.8/32 lookup 12"+eni("12"), netns), left("-f", "--eni-tables", "11"))

	o := n.ok("cleanup", "--bpf-state", "-f")
	require.NotContains(t, o.stdout, "not asked for", "the flags go with --all-state")
	for _, args := range [][]string{{"--bpf-state", "--eni-tables=11"}, {"--all-state", "--eni-tables=254"}, {"--all-state", "--eni-tables=0"}, {"--all-state", "--eni-tables=4294967296"}} {
		n.exits(64, append([]string{"cleanup", "-f"}, args...)...)
	}
}

// Another agent's state is removed, and Cilium's is ignored.
func TestCLN2_OwnershipFromAFile(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /run/cilium && touch /run/cilium/x")
	defer n.asItWas()()
	n.shell("mkdir -p /var/lib/acme && ip link add acme0 type veth peer name eth7")
	n.write("/run/acme.yaml", "linsk: []\npins: 7\n")
	o := n.exits(64, "cleanup", "--ownership", "/run/acme.yaml", "--all-state", "-f")
	require.Contains(t, o.stderr, "line 1: field linsk not found; line 2: cannot unmarshal")
	for _, args := range [][]string{{"--ownership", ""}, {"--ownership", "/run/acme.yaml", "--netns"}, {"--ownership", "/run/acme.yaml", "--aws-leftovers"}} {
		require.Equal(t, 64, n.run(append(args, "cleanup", "--all-state", "-f")...).code, args)
	}
	n.write("/run/acme.yaml", "---\n---\nagent: acme\nlinks: [{name: 'acme[0-9]'}]\nstateDirs: [/var/lib/acme]\n---\n")
	o = n.runEnv([]string{"CILIUM_ALL_STATE=true"}, "cleanup", "--ownership", "/run/acme.yaml", "-f")
	require.Contains(t, o.stderr, "nothing is selected", "the variable speaks of Cilium")
	o = n.ok("cleanup", "--ownership", "/run/acme.yaml", "--all-state", "--dry-run")
	require.Contains(t, o.stdout, "acme0")
	n.ok("cleanup", "--ownership", "/run/acme.yaml", "--all-state", "-f")
	n.shell("rm /run/acme.yaml")
}

// A mistake in a flag or a file once removed these, and an exception still can.
func TestSEC9_NoFlagTakesWhatIsTheNodes(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /etc/cni/net.d /etc/kubernetes && touch /etc/cni/net.d/10-calico.conflist /etc/kubernetes/kubelet.conf && iptables -N KUBE-SERVICES")
	defer n.asItWas()()
	n.write("/run/files.yaml", "agent: acme\nfiles: [/etc/passwd, /etc/kubernetes/kubelet.conf]\n")
	n.write("/run/chains.yaml", "agent: acme\nchainPrefixes: [KUBE-]\n")
	n.write("/run/good.yaml", "agent: acme\nlinks: [{name: 'acme[0-9]'}]\n")
	all := []string{"cleanup", "--all-state", "-f"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append(all, "--ownership", "/run/files.yaml"), `files: "/etc/passwd" would match the path /etc/passwd*, which is the node's`},
		{append(all, "--ownership", "/run/chains.yaml"), `chainPrefixes: "KUBE-" would match the chain KUBE-*, which is kube-proxy's`},
		{append(all, "--sysctl-conf-dir=/etc", "--sysctl-config-file=passwd.conf"), `files: "/etc/passwd.conf": only names of the agent "cilium" are searched for there: `},
		{append(all, "--cni-conf-dir=/etc/ssh", "--cni-conf-name=sshd.conf"), `"/etc/ssh" would match the path /etc/ssh, which is the node's`},
		{append(all, "--exception=file:/etc/passwd"), `exceptions: "/etc/passwd" would match`},
		{append(all, "--exception=/etc/cni"), "want KIND:NAME"},
		{[]string{"uninstall-cni", "--write-cni-conf-when-ready=/etc/cni/net.d/10-calico.conflist"}, `"/etc/cni/net.d/10-calico.conflist" would match the CNI file 10-calico*, which is calico's`},
	} {
		o := n.exits(64, c.args...)
		require.Contains(t, o.stderr, c.want, c.args)
	}
	n.shell("rm /run/files.yaml /run/chains.yaml")
	n.ok(append(all, "--ownership", "/run/good.yaml", "--exception=file:/etc/cni/net.d/10-calico.conflist", "--exception=chain:KUBE-SERVICES")...)
	n.shell("rm /run/good.yaml; test ! -e /etc/cni/net.d/10-calico.conflist; ! iptables -S KUBE-SERVICES; touch /etc/cni/net.d/10-calico.conflist; iptables -N KUBE-SERVICES")
}

func TestCLN2_PlacesOfANodeAreThoseOfTheFlags(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /opt/conf /opt/plugins /run/bpf && touch /opt/conf/05-cilium.conflist /opt/conf/07-mine.conflist /opt/conf/10-other.conf.mybak /opt/plugins/cilium-cni /opt/plugins/bridge && mount -n -t bpf bpf /run/bpf && mkdir -p /run/bpf/cilium/x /etc/cni/net.d && touch /etc/cni/net.d/05-cilium.conflist")
	args := []string{"cleanup", "--all-state", "-f", "--cni-conf-dir", "/opt/conf", "--cni-conf-name", "07-mine.conflist",
		"--cni-backup-suffix", ".mybak", "--cni-bin-dir", "/opt/plugins", "--bpf-fallback", "/run/bpf"}
	n.ok(append(args, "--custom-cni-conf")...)
	require.Equal(t, "05-cilium.conflist\n07-mine.conflist\n10-other.conf.mybak", n.shell("ls /opt/conf"), "they have another owner")
	require.Equal(t, "bridge", n.shell("ls /opt/plugins"))
	require.Empty(t, n.shell("ls /run/bpf | grep cilium || true"))

	n.ok(args...)
	require.Equal(t, "10-other.conf", n.shell("ls /opt/conf"))
	require.Equal(t, "05-cilium.conflist", n.shell("ls /etc/cni/net.d"))
	require.NotEmpty(t, n.shell("grep /run/bpf /proc/self/mountinfo"), "its owner is unknown")
}

// If another program keeps making what cleanup removes, cleanup fails.
func TestCLN1_CleanupLooksOnceMore(t *testing.T) {
	n := newParallelNode(t)
	n.shell("ip link add cilium_host type veth peer name cilium_net")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	_, err = w.Write(make([]byte, 16*os.Getpagesize())) // it is full, so that cleanup waits with its list
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	cmd := n.Command(binary, "cleanup", "--all-state", "-f")
	cmd.Stdout, cmd.Stderr = w, &stderr
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	require.Eventually(t, func() bool {
		said, err := exec.Command("sh", "-c", fmt.Sprintf("cat /proc/%d/task/*/syscall", cmd.Process.Pid)).Output()
		return err == nil && strings.Contains("\n"+string(said), fmt.Sprintf("\n%d 0x1 ", unix.SYS_WRITE))
	}, time.Minute, 5*time.Millisecond)
	n.shell("mkdir -p /var/lib/cilium; : > /var/lib/cilium/again")
	_, err = stdout.ReadFrom(r)
	require.NoError(t, err)
	o := finish(t, cmd.Wait, &stdout, &stderr)
	require.Equal(t, 1, o.code, o.stderr)
	require.Contains(t, o.stderr, "/var/lib/cilium")
	n.ok("cleanup", "--all-state", "-f")
}

// A path that an operator names may belong to the node.
func TestCLN6_TheNodesOwnMountsAndFilesStay(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /run/adm && mount -n -t bpf bpf /run/adm")
	before := n.state()
	env := []string{"CGROUP_ROOT=/sys/fs/cgroup", "CILIUM_ALL_STATE=true", "SLIPWAY_BPF_ROOT=/run/adm"}
	n.okEnv(env, "cleanup", "-f")
	require.Empty(t, before.Diff(n.state()))
	n.exitsEnv(64, env, "cleanup", "-f", "--cni-conf-name", "../../hostname")
	require.Empty(t, before.Diff(n.state()))

	n.shell("mkdir -p /run/cilium && touch /run/cilium/old")
	before = n.state()
	n.okEnv(env, "cleanup", "-f", "--all-state=false")
	require.Empty(t, before.Diff(n.state()))
	n.exits(64, "cleanup", "--bpf-state", "--netns")
}

// Between apply's cleanup and the agent's own configuration, no other CNI's configuration may
// be restored.
func TestCLN8_CleanupWithinApplyBringsNoOtherCNIBack(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /etc/cni/net.d && touch /etc/cni/net.d/05-cilium.conflist /etc/cni/net.d/100-crio-bridge.conflist.cilium_bak")
	n.okEnv([]string{"CILIUM_ALL_STATE=true"}, "apply", "--plugins", n.plugins)
	require.Equal(t, "100-crio-bridge.conflist.cilium_bak", n.shell("ls /etc/cni/net.d"))
	n.ok("cleanup", "--all-state", "-f")
	require.Equal(t, "100-crio-bridge.conflist", n.shell("ls /etc/cni/net.d"))
}

// Files in the agent's directories that the plan needs survive.
func TestCLN8_CleanupWithinApplySparesTheConfigurationAndTheRecord(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /var/lib/cilium /run/cilium && touch /var/lib/cilium/old /run/cilium/old")
	args := []string{
		"apply", "--source", "file:" + n.source, "--dest", "/var/run/cilium/config-map", "--state-dir", "/var/lib/cilium/slipway",
		"--plugins", n.plugins, "--cni-conf", n.conf, "--output", "json",
	}
	n.ok(args...)
	for _, want := range []string{"changed", "unchanged"} {
		o := n.okEnv([]string{"CILIUM_ALL_STATE=true"}, args...)
		require.Equal(t, want, o.report(t).statuses()["cleanup"], o.stdout)
		require.Equal(t, "test", n.read("/run/cilium/config-map/cluster-name"))
		require.Equal(t, "gone", n.shell("test -e /var/lib/cilium/old || test -e /run/cilium/old && echo there || echo gone"))
	}
	// A directory may be named from here; the mount's flag is empty, which means its default.
	args[0], args[4] = "check", "config-map"
	o := n.runEnv([]string{"CILIUM_ALL_STATE=true"}, append(args, "--cgroup-root=")...)
	require.Equal(t, "unchanged", o.report(t).statuses()["cleanup"], "what is recorded is uninstall's: "+o.stdout)
	n.ok("uninstall", "--state-dir", "/var/lib/cilium/slipway")
	require.Empty(t, n.shell("ls -A /var/lib/cilium; ls -A /run/cilium 2>/dev/null || true"))
}

// None of the named steps is recorded: that does not mean all steps.
func TestPLAN12_UninstallOfNothingLeavesEverything(t *testing.T) {
	n := newParallelNode(t)
	n.ok(n.args("apply")...)
	for _, args := range [][]string{
		{"uninstall", "--only", "modules"},
		{"uninstall", "--skip", "config,cleanup,host-paths,cgroup,sysctl,bpffs,cni"},
		{"uninstall", "--dry-run", "--only", "modules"},
	} {
		o := n.ok(args...)
		require.Contains(t, o.stdout, "no steps")
		n.ok(n.args("check")...) // nothing is left to do
	}
	n.ok("uninstall")
	n.exits(2, n.args("check")...)
}

// An agent attaches its programs at the cgroup root in its configuration: a mount elsewhere is
// of no use to it.
func TestCgroupRootIsTheConfigurationsWhereAKeyIsNamed(t *testing.T) {
	n := newParallelNode(t)
	apply := func(config string, args ...string) outcome {
		require.NoError(t, os.WriteFile(n.source, []byte(config), 0o644))
		return n.run(n.args("apply", append(args, "--cgroup-root-key=cgroup-root")...)...)
	}
	o := apply("cgroup-root: run/agent\n")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stdout+o.stderr, `the value of cgroup-root is "run/agent", which is no absolute path`)
	require.NotContains(t, n.shell("cat /proc/self/mountinfo"), "cgroupv2")

	o = apply("debug: \"true\"\n", "--cgroup-root=/run/flag")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "/run/flag")
	o = apply("cgroup-root: /run/agent\n", "--cgroup-root=/run/flag")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, n.shell("cat /proc/self/mountinfo"), " /run/agent ")
	n.ok("uninstall")
	require.NotContains(t, n.shell("cat /proc/self/mountinfo"), "/run/agent")
}

func TestANodesAnnotationMovesNoMount(t *testing.T) {
	n := newParallelNode(t)
	server := n.annotated(`{"config.cilium.io/cgroup-root":"/etc"}`)
	o := n.run("apply", "--dest", "/run/agent-config", "--only", "config,cgroup", "--cgroup-root-key", "cgroup-root",
		"--k8s-api-server-urls", server, "--node-name", "node1", "--source", "file:"+n.source, "--source", "node")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stderr, "ignored: cgroup-root = /etc from node:node1")
	require.Equal(t, "/etc", n.read("/run/agent-config/cgroup-root"), "the agent hears it")
	require.Contains(t, n.shell("cat /proc/self/mountinfo"), " "+cgroupRoot+" ")
}
