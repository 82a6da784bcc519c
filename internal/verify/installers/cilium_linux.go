// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package installers

import (
	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/sysctl"
)

// ciliumAgent is the chart's DaemonSet.
const ciliumAgent = "install/kubernetes/cilium/templates/cilium-agent/daemonset.yaml"

// OldCilium returns the objects that Cilium's init containers leave, and the
// configuration that its agent writes, by the chart's values except cni.exclusive, which
// is true in them too.
func OldCilium() Installation {
	const restart = "the unit systemd-sysctl.service, which tools/sysctlfix/main.go restarts"
	own := programs("1.18.3", "plugins/cilium-cni/install-plugin.sh", "cilium-cni")
	return Installation{
		Agent: "Cilium", Release: "1.18.3",
		Dirs: []Dir{
			{binDir, 0o755, ciliumAgent + ": cni-path"},
			{confDir, 0o755, ciliumAgent + ": etc-cni-netd"},
			{"/run/cilium/cgroupv2", 0o755, ciliumAgent + ": cilium-cgroup"},
			{"/run/netns", 0o755, ciliumAgent + ": cilium-netns"},
			{"/etc/sysctl.d", 0o755, "the distribution's: tools/sysctlfix/main.go makes none"},
		},
		Files: append(own,
			File{Path: binDir + "/loopback", Mode: 0o755, Content: program("loopback", referenceRelease), Missing: true, Says: "plugins/cilium-cni/install-plugin.sh: OVERWRITE_LOOPBACK"},
			File{Path: "/etc/sysctl.d/99-zzz-override_cilium.conf", Mode: 0o644, Content: ciliumDropIn, Says: "tools/sysctlfix/main.go"},
			File{Path: confDir + "/05-cilium.conflist", Mode: 0o600, Content: ciliumConf, Says: "daemon/cmd/cni/config.go: mode none"},
		),
		Values: []Value{{"net/ipv4/conf/all/rp_filter", "0", restart}},
		Mounts: []Mount{
			{"/run/cilium/cgroupv2", "cgroup2", "none", "pkg/cgroups/cgroups_linux.go: mountCgroup"},
			{"/sys/fs/bpf", "bpf", "bpf", ciliumAgent + ": mount-bpf-fs"},
		},
		Aside: Aside{confDir, "05-cilium.conflist", ".cilium_bak", "daemon/cmd/cni/config.go: cleanupOtherCNI"},
	}
}

const ciliumDropIn = `
# Disable rp_filter on Cilium interfaces since it may cause mangled packets to be dropped
-net.ipv4.conf.lxc*.rp_filter = 0
-net.ipv4.conf.cilium_*.rp_filter = 0
# The kernel uses max(conf.all, conf.{dev}) as its value, so we need to set .all. to 0 as well.
# Otherwise it will overrule the device specific settings.
net.ipv4.conf.all.rp_filter = 0
`

const ciliumConf = `
{
  "cniVersion": "0.3.1",
  "name": "cilium",
  "plugins": [
    {
       "type": "cilium-cni",
       "enable-debug": false,
       "log-file": "/var/run/cilium/cilium-cni.log"
    }
  ]
}`

// Cilium does the work of its init containers with our packages.
type Cilium struct{ Setting }

// Plan returns the whole plan. The caller calls done when the plan has run.
func (c Cilium) Plan() (p *bootstrap.Plan, done func() error, err error) {
	plugins, err := cniinstall.OpenPlugins(c.image(binDir))
	if err != nil {
		return nil, nil, err
	}
	install, agent := cniinstall.Cilium(""), cniinstall.CiliumAgent("")
	agent.CNIVersion = "0.3.1" // the replaced release's
	install.Config = agent
	install.Plugins, install.Names, install.Exclusive = plugins, []string{"cilium-cni", "loopback"}, true
	install.BinDir, install.ConfDir = c.path(binDir), c.path(confDir)
	return c.plan("cilium",
		c.paths(hostpath.Path{Path: "/run/cilium", Type: hostpath.DirectoryOrCreate}, hostpath.Path{Path: "/run/netns", Type: hostpath.DirectoryOrCreate}),
		bootstrap.Step{Name: "cgroup", Action: cgroup.Mount{Path: c.path("/run/cilium/cgroupv2")}},
		bootstrap.Step{Name: "sysctl", Action: sysctl.Cilium()},
		bootstrap.Step{Name: "bpffs", Action: bpffs.Mount{}},
		bootstrap.Step{Name: "cni", Action: install},
	), plugins.Close, nil
}

// NewCiliumImage returns the plugins of the release that uses our packages.
func NewCiliumImage() []File {
	return append(programs("new", "", "cilium-cni"), programs(referenceRelease, "", "loopback")...)
}
