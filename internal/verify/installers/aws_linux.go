// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package installers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/sysctl"
)

// awsReference are the reference plugins, all of which are built and copied: Makefile, target
// plugins, and build_linux.sh there.
var awsReference = []string{
	"bandwidth", "bridge", "dhcp", "dummy", "firewall", "host-device", "host-local", "ipvlan", "loopback", "macvlan",
	"portmap", "ptp", "sbr", "static", "tap", "tuning", "vlan", "vrf",
}

const (
	awsManifest = "config/master/aws-k8s-cni.yaml"
	awsInit     = "cmd/aws-vpc-cni-init/main.go"
	awsMain     = "cmd/aws-vpc-cni/main.go"
)

// OldAWS returns the objects that the two containers of the VPC CNI leave, in an IPv4
// cluster whose nodes' primary link is eth0, on a node that has been updated since 1.12.
func OldAWS() Installation {
	i := Installation{
		Agent: "AWS VPC CNI", Release: "1.23.0",
		Dirs: []Dir{
			{binDir, 0o755, awsManifest + ": cni-bin-dir"},
			{confDir, 0o755, awsManifest + ": cni-net-dir"},
			{"/var/log/aws-routed-eni", 0o755, awsManifest + ": log-dir"},
			{"/run/aws-node", 0o755, awsManifest + ": run-dir"},
		},
		Files: []File{
			{Path: "/run/xtables.lock", Mode: 0o644, Says: awsManifest + ": xtables-lock", Missing: true},
			{Path: binDir + "/LICENSE", Mode: 0o644, Content: "Apache License\n", Says: awsInit + ": every file of the folder; Makefile, target plugins"},
			{Path: binDir + "/aws-cni-support.sh", Mode: 0o755, Content: "#!/bin/sh\n# support 1.23.0\n", Says: awsInit + "; scripts/dockerfiles/Dockerfile.init"},
			{Path: binDir + "/egress-v4-cni", Mode: 0o755, Content: program("egress-v4-cni", "1.12.6"), Says: "v1.12.6 " + awsMain + ": pluginBins; no later release removes it"},
		},
		Values: []Value{
			{"net/ipv4/conf/eth0/rp_filter", "2", awsInit + ": configureSystemParams"},
			{"net/ipv4/tcp_early_demux", "1", awsInit + ": configureSystemParams"},
		},
	}
	i.Files = append(i.Files, programs(referenceRelease, awsInit, awsReference...)...)
	i.Files = append(i.Files, programs("1.23.0", awsMain+": pluginBins", "aws-cni", "egress-cni")...)
	i.Files = append(i.Files, File{Path: confDir + "/10-aws.conflist", Mode: 0o644, Content: awsDefaults.render("", false), Says: awsMain + ": generateJSON; misc/10-aws.conflist"})
	return i
}

// awsTemplate is the list in the image.
const awsTemplate = `{
  "cniVersion": "0.4.0",
  "name": "aws-cni",
  "disableCheck": true,
  "plugins": [
    {
      "name": "aws-cni",
      "type": "aws-cni",
      "vethPrefix": "{veth}",
      "mtu": "{mtu}",
      "podSGEnforcingMode": "{mode}",
      "pluginLogFile": "{log}",
      "pluginLogLevel": "{level}",
      "capabilities": {"io.kubernetes.cri.pod-annotations": true}
    },
    {
      "name": "egress-cni",
      "type": "egress-cni",
      "mtu": "{mtu}",
      "enabled": "{egress}",
      "randomizeSNAT": "{snat}",
      "nodeIP": "{ip}",
      "ipam": {
         "type": "host-local",
         "ranges": [[{"subnet": "{subnet}"}]],
         "routes": [{"dst": "{dst}"}],
         "dataDir": "{data}"
      },
      "pluginLogFile": "{egresslog}",
      "pluginLogLevel": "{level}"
    },
    {
      "type": "portmap",
      "capabilities": {"portMappings": true},
      "snat": true
    }
  ]
}
`

// awsSettings are the variables that the installer's tests set, and those in the list.
type awsSettings struct {
	VethPrefix string `config:"AWS_VPC_K8S_CNI_VETHPREFIX" default:"eni"`
	LinkMTU    int    `config:"AWS_VPC_ENI_MTU" default:"9001"`
	PodMTU     *int   `config:"POD_MTU"` // nil means the link's
	Mode       string `config:"POD_SECURITY_GROUP_ENFORCING_MODE" default:"strict"`
	Log        string `config:"AWS_VPC_K8S_PLUGIN_LOG_FILE" default:"/var/log/aws-routed-eni/plugin.log"`
	Level      string `config:"AWS_VPC_K8S_PLUGIN_LOG_LEVEL" default:"Debug"`
	SNAT       string `config:"AWS_VPC_K8S_CNI_RANDOMIZESNAT" default:"prng"`
	IPv6       bool   `config:"ENABLE_IPv6" default:"false"`
	EgressIPv4 bool   `config:"ENABLE_V4_EGRESS" default:"true"`
	EgressIPv6 bool   `config:"ENABLE_V6_EGRESS" default:"false"`
	Bandwidth  bool   `config:"ENABLE_BANDWIDTH_PLUGIN" default:"false"`
	NoPodIPv6  bool   `config:"DISABLE_POD_V6" default:"false"`
}

var awsDefaults = awsSettings{
	VethPrefix: "eni", LinkMTU: 9001, Mode: "strict", Log: "/var/log/aws-routed-eni/plugin.log", Level: "Debug", SNAT: "prng", EgressIPv4: true,
}

// Settings reads the container's environment. The error names all invalid variables.
func (a AWS) Settings(ctx context.Context) (s awsSettings, err error) {
	config, err := configresolve.Resolve(ctx, configresolve.Static{Name: "environment", Values: a.Env})
	if err != nil {
		return s, err
	}
	errs := []error{configresolve.Decode(config, &s)}
	least := map[bool]int{false: 576, true: 1280}[s.IPv6]
	for name, mtu := range map[string]int{"AWS_VPC_ENI_MTU": s.LinkMTU, "POD_MTU": s.mtu()} {
		if mtu < least || mtu > 9001 {
			errs = append(errs, fmt.Errorf("%s is %d, which is not from %d to 9001", name, mtu, least))
		}
	}
	return s, errors.Join(errs...)
}

func (s awsSettings) mtu() int {
	if s.PodMTU != nil {
		return *s.PodMTU
	}
	return s.LinkMTU
}

func (s awsSettings) render(nodeIP string, egress bool) string {
	subnet, dst, data, log := "fd00::ac:00/118", "::/0", "/run/cni/v4pd/egress-v6-ipam", "/var/log/aws-routed-eni/egress-v6-plugin.log"
	if s.IPv6 {
		subnet, dst, data, log = "169.254.172.0/22", "0.0.0.0/0", "/run/cni/v6pd/egress-v4-ipam", "/var/log/aws-routed-eni/egress-v4-plugin.log"
	}
	return strings.NewReplacer(
		"{veth}", s.VethPrefix, "{mtu}", strconv.Itoa(s.mtu()), "{mode}", s.Mode, "{log}", s.Log, "{level}", s.Level, "{snat}", s.SNAT,
		"{ip}", nodeIP, "{egress}", strconv.FormatBool(egress), "{subnet}", subnet, "{dst}", dst, "{data}", data, "{egresslog}", log,
	).Replace(awsTemplate)
}

// AWS does the work of the two containers of the VPC CNI with our packages.
type AWS struct {
	Setting
	PrimaryIP func(ipv4 bool) (string, error) // asks the cloud; nil if it cannot be asked
}

// Config returns the list, with the plugins that the settings add to it.
func (a AWS) Config(ctx context.Context) (cniinstall.Whole, error) {
	s, err := a.Settings(ctx)
	if err != nil {
		return nil, err
	}
	egress, nodeIP := s.EgressIPv6, ""
	if s.IPv6 {
		egress = s.EgressIPv4
	}
	if s.IPv6 || egress {
		if nodeIP, err = a.PrimaryIP(s.IPv6); err != nil {
			return nil, fmt.Errorf("ask for the node's address: %w", err)
		}
	}
	conf := []byte(s.render(nodeIP, egress))
	for _, plugin := range s.more() {
		if conf, err = cniinstall.Chain(conf, plugin); err != nil {
			return nil, err
		}
	}
	return conf, nil
}

// more returns the plugins to add at the end.
func (s awsSettings) more() (plugins []json.RawMessage) {
	if s.Bandwidth {
		plugins = append(plugins, json.RawMessage(`{"type": "bandwidth", "capabilities": {"bandwidth": true}}`))
	}
	if s.NoPodIPv6 {
		plugins = append(plugins, json.RawMessage(`{"type": "tuning", "sysctl": {"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1", "net.ipv6.conf.lo.disable_ipv6": "1"}}`))
	}
	return plugins
}

// Plan returns the whole plan: first the objects that the agent needs to start, and the
// configuration last. The caller calls done when the plan has run.
func (a AWS) Plan(ctx context.Context) (p *bootstrap.Plan, done func() error, err error) {
	config, err := a.Config(ctx)
	if err != nil {
		return nil, nil, err
	}
	plugins, err := cniinstall.OpenPlugins(a.image(binDir))
	if err != nil {
		return nil, nil, err
	}
	install := cniinstall.Install{
		Plugins: plugins, Names: append([]string{"aws-cni", "egress-cni", "aws-cni-support.sh"}, awsReference...),
		BinDir: a.path(binDir), ConfDir: a.path(confDir), ConfName: "10-aws.conflist",
	}
	published := install
	published.Plugins, published.Names, published.Config, published.ConfMode = nil, nil, config, 0o644
	return a.plan("aws-node",
		a.paths(
			hostpath.Path{Path: "/var/log/aws-routed-eni", Type: hostpath.DirectoryOrCreate},
			hostpath.Path{Path: "/run/aws-node", Type: hostpath.DirectoryOrCreate},
			hostpath.Path{Path: "/run/xtables.lock", Type: hostpath.FileOrCreate},
		),
		bootstrap.Step{Name: "plugins", Action: install},
		bootstrap.Step{Name: "sysctl", Skip: a.Root != "", SkipReason: "files only", Action: sysctl.Settings{Values: []sysctl.Setting{
			{Key: "net.ipv4.conf.eth0.rp_filter", Value: "2"}, {Key: "net.ipv4.tcp_early_demux", Value: "1", IgnoreFailure: true},
		}}},
		bootstrap.Step{Name: "cni", After: []string{"plugins", "sysctl"}, Action: published},
	), plugins.Close, nil
}

// NewAWSImage returns the files of the release that uses our packages.
func NewAWSImage() []File {
	files := append(programs(referenceRelease, "", awsReference...), programs("new", "", "aws-cni", "egress-cni")...)
	return append(files,
		File{Path: binDir + "/LICENSE", Mode: 0o644, Content: "Apache License\n"},
		File{Path: binDir + "/aws-cni-support.sh", Mode: 0o755, Content: "#!/bin/sh\n# support new\n"})
}
