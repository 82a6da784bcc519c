// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"strings"
	"time"

	cniversion "github.com/containernetworking/cni/pkg/version"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/sysctl"
)

// options are the values of all flags: the fields of the table.
type options struct {
	hostProc, configFile, logFormat, logLevel, output, timelineFile string
	here, debug, quiet                                              bool

	sources, allowKeys, denyKeys []string
	nodeName, namespace, dest    string
	strict, showValues, watch    bool
	kubeconfig, apiServer        string
	apiServers                   []string
	retrySpread                  time.Duration
	enableK8s, firewallBypass    bool
	qps                          float32
	burst                        int
	connectTimeout, connectIdle  time.Duration

	cgroupRoot, cgroupRootKey, bpfRoot, bpfFallback                            string
	cgroupRepair, bpfShared                                                    bool
	modules, drop                                                              []string
	sysctls                                                                    []string
	sysctlConfDir, sysctlConfFile, sysctlUnit                                  string
	cniBinDir, cniConf, cniConfDir, cniConfName                                string
	plugins, optionalPlugins, pluginsElsewhere, alsoBinDirs                    []string
	cniConfKey, cniChain, cniTemplate, cniVersion, cniLogFile, cniBackupSuffix string
	cniDebug, cniExclusive, cniChainInPlace                                    bool
	cniWait, kubeProxyWait                                                     time.Duration
	overwriteLoopback, overwritePlugins, userManagedConf, keepPlugins          bool
	writeWhenReady, runtimeEndpoint                                            string
	gateDir                                                                    string // of uninstall-cni
	waitLoaded                                                                 time.Duration
	stateDir, agent, owner                                                     string
	takeOver, anyOwner, force, acceptKept, allAgents                           bool
	adopt, override, damaged, dryRun, diff                                     bool
	timeout, lockTimeout, every                                                time.Duration
	skip, only, ignorePreflight                                                []string
	reportNode                                                                 bool
	reportMetrics                                                              string

	cleanupOptions
	ignored []string // what Cilium's build-config has, and nothing here needs
}

// cleanupOptions are the values of the flags that only cleanup has.
type cleanupOptions struct {
	allState, bpfState, netns, xfrm, aws, whileAlive bool

	eniTables, exceptions             []string // numbers, KIND:NAME
	ownershipFile, planFrom, planFile string
}

const (
	formatText = "text"
	formatJSON = "json"

	defaultStateDir      = "/var/lib/slipway"
	defaultSysctlConfDir = "/etc/sysctl.d"
	systemdSysctl        = "systemd-sysctl.service" // the unit that applies drop-ins
)

// The commands that have a flag. What apply and install-cni take, uninstall and
// uninstall-cni take too, so that they can be called with the same flags.
const (
	applies  = " apply check run "
	installs = applies + "install-cni guard "
	resolves = installs + "build-config explain "
	records  = installs + "mount-cgroup mount-bpffs sysctlfix "
	undoes   = " uninstall uninstall-cni "
	changes  = records + undoes + "cleanup forget release "
	reports  = applies + undoes + "install-cni mount-cgroup mount-bpffs sysctlfix build-config "

	offHost = " build-config completion demo explain help version " // commands that use nothing of the host
	offAll  = " completion demo help version "
)

// group is a part of the table, as help shows it.
type group struct {
	title string
	flags []*flag
}

// table is everything that there is to know of the flags, in the order of help. A name has
// several rows where commands mean different things by it.
func (a *app) table() []group {
	cilium := cniinstall.Cilium("")
	return []group{
		{"where", []*flag{
			{name: "host-proc", to: &a.hostProc, off: offHost, side: container, check: absolute, helps: "host.not-host",
				help: "where the host's /proc is mounted in this container, such as /hostproc; empty: act in this process's own namespaces"},
			{name: "here", to: &a.here, off: offHost, helps: "host.not-host",
				help: "without --host-proc, in a container: change the container itself, not its host"},
			{name: "config", to: &a.configFile, off: offAll, side: container,
				help: "YAML file of flags, one FLAG: VALUE per line; the command line and the environment take precedence"},
			{name: "node-name", to: &a.nodeName, on: resolves + "uninstall", env: "K8S_NODE_NAME NODE_NAME", check: fileName,
				help: "name of this node in the cluster (default: the host name)"},
			{name: "agent", to: &a.agent, on: changes + "status", def: cleanup.Cilium().Agent, empty: meansNothing, check: agentName, helps: "ledger.two-agents",
				help: "name of the agent: each on a node has records, an owner and an uninstall of its own; mounts and the sysctl drop-in carry its name; status: show this agent only"},
			{name: "owner", to: &a.owner, on: changes + "status", env: "POD_UID", check: ownerName, helps: "ledger.not-owner",
				help: "owner on whose behalf this runs, such as a pod's UID: the last owner to apply owns the node, and an earlier one can no longer change it; empty: none"},
			{name: "state-dir", to: &a.stateDir, on: changes + "status", side: host, def: defaultStateDir, check: stateDir,
				help: "directory of the records that uninstall undoes; empty: record nothing, so that nothing can be undone"},
		}},
		{"what", []*flag{
			{name: "only", to: &a.only, on: applies + "uninstall", empty: meansNothing, choices: choosable(), help: "run only these steps"},
			{name: "skip", to: &a.skip, on: applies + "uninstall", choices: choosable(), helps: "cni.directory-unusable sysctl.directory-read-only", help: "steps to leave out"},
			{name: "ignore-preflight", to: &a.ignorePreflight, on: "check", choices: preflightNames, helps: stepPreflight,
				help: "checks to leave out, of those for conditions known to fail later: " + strings.Join(preflightNames, ", ")},
			{name: "all-state", to: &a.allState, on: "cleanup", helps: "bpffs.holds-pins", help: "remove everything that belongs to the agent; as does CILIUM_ALL_STATE or CLEAN_CILIUM_STATE in the environment, if it is exactly true"},
			{name: "bpf-state", to: &a.bpfState, on: "cleanup", help: "remove the agent's BPF programs, pins and maps only; as does CILIUM_BPF_STATE or CLEAN_CILIUM_BPF_STATE, likewise"},
			{name: "netns", to: &a.netns, on: "cleanup", help: "with --all-state: also network namespaces named cilium-* and cni-* (the latter may belong to another CNI)"},
			{name: "xfrm", to: &a.xfrm, on: "cleanup", help: "with --all-state: also IPsec policies and states with the agent's marks"},
			{name: "eni-tables", to: &a.eniTables, on: "cleanup", check: routingTable,
				help: "with --all-state: also the agent's rules and routes of ENI or Azure pods for these routing tables, such as 10,11 (see ip rule; another CNI of the cloud makes similar ones)"},
			{name: "aws-leftovers", to: &a.aws, on: "cleanup",
				help: "instead of the agent's state: remove the rules of iptables and nftables of an AWS VPC CNI that is gone from this node"},
			{name: "ownership", to: &a.ownershipFile, on: "cleanup", side: container, empty: meansNothing,
				help: "instead of Cilium's state: remove that of another agent, described by this YAML file: its links, routes, chains, files and so on (examples/ownership has those of Calico, kube-proxy and ip-masq-agent)"},
			{name: "exception", to: &a.exceptions, on: "cleanup", lines: true, check: exception,
				help: "also remove this one KIND:NAME, although it is known to belong to another agent or lies in a place that agents do not use: link, chain, ipset, file or directory, with its whole name; or have cni-directory:PATH or sysctl-directory:PATH searched too, or treat mount:PATH as one of the agent's"},
			{name: "plan", to: &a.planFrom, on: "cleanup", side: container, empty: meansNothing,
				help: "remove only the items in this file, as far as they are found; give the same flags for the agent as to the --dry-run that wrote it"},
			{name: "cgroup-root", to: &a.cgroupRoot, on: applies + "mount-cgroup", env: "CGROUP_ROOT", side: host, def: "/run/cilium/cgroupv2", empty: meansDefault, helps: "cgroup.foreign",
				help: "where to mount cgroup2"},
			{name: "cgroup-root-key", to: &a.cgroupRootKey, on: applies, check: configKey,
				help: "key of the resolved configuration whose value, if set, replaces --cgroup-root, for agents that read their cgroup root there"},
			{name: "cgroup-repair", to: &a.cgroupRepair, on: applies + "mount-cgroup", helps: "cgroup.not-root",
				help: "replace a cgroup2 mount that does not show the host's root cgroup"},
			{name: "bpf-root", to: &a.bpfRoot, on: applies + "mount-bpffs cleanup", side: host, def: "/sys/fs/bpf", empty: meansDefault, helps: "bpffs.foreign",
				help: "where to mount the BPF file system"},
			{name: "bpf-fallback", to: &a.bpfFallback, on: applies + "mount-bpffs cleanup", side: host, helps: "bpffs.foreign",
				help: "where to mount it instead if another file system is mounted on --bpf-root; empty: that is an error"},
			{name: "bpf-shared", to: &a.bpfShared, on: applies + "mount-bpffs",
				help: "fail unless the mount will be visible on the host (for a pod without --host-proc)"},
			{name: "kernel-modules", to: &a.modules, on: applies, check: fileName,
				help: "kernel modules that the agent needs; those that are neither built in nor loaded are loaded by the host's modprobe (needs SYS_MODULE), and stay"},
			{name: "sysctl", to: &a.sysctls, on: applies + "sysctlfix", lines: true, check: setting,
				help: "KEY=VALUE for the sysctl drop-in, as in sysctl.d(5); repeatable (default: reverse path filtering off for Cilium's links)"},
			{name: "sysctl-conf-dir", to: &a.sysctlConfDir, on: applies + "sysctlfix uninstall cleanup status", side: host, def: defaultSysctlConfDir, helps: "sysctl.directory-read-only",
				help: "directory of the sysctl drop-in; empty: no file, only the values"},
			{name: "sysctl-config-file", to: &a.sysctlConfFile, on: applies + "sysctlfix cleanup", def: sysctl.Cilium().Name, empty: meansDefault, check: confName,
				help: "name of the sysctl drop-in"},
			{name: "systemd-sysctl-unit", to: &a.sysctlUnit, on: "sysctlfix", def: systemdSysctl, empty: meansDefault, check: fileName,
				help: "the systemd unit that applies sysctl drop-ins"},
			{name: "wait-for-kube-proxy", to: &a.kubeProxyWait, on: applies,
				help: "how long to wait until kube-proxy has written its rules, in nf_tables or legacy iptables, unless the configuration makes the agent replace kube-proxy (needs NET_ADMIN); 0: do not wait"},
			{name: "drop-capabilities", to: &a.drop, on: "run", check: capability,
				help: "capabilities that the command does not get, such as SYS_ADMIN,SYS_CHROOT,SYS_PTRACE; needs CAP_SETPCAP"},
		}},
		{"CNI", []*flag{
			{name: "plugins", to: &a.plugins, on: installs, side: container, helps: "cni.plugin-missing cni.no-loopback",
				help: "directories of CNI plugins to install: their executable files; of two with the same name, the one in the first directory is installed"},
			{name: "optional-plugins", to: &a.optionalPlugins, on: installs, check: fileName, helps: "cni.no-loopback",
				help: "plugins that may be missing, including loopback if pods need none from this node (not needed for a runtime that reports so)"},
			{name: "plugins-elsewhere", to: &a.pluginsElsewhere, on: installs, check: fileName, helps: "cni.plugin-missing",
				help: "plugins that the container runtime finds elsewhere, such as in the node's image: neither searched nor asked for their versions"},
			{name: "overwrite-plugins", to: &a.overwritePlugins, on: installs, env: "OVERWRITE_CILIUM", def: "true", help: "replace existing plugins"},
			{name: "overwrite-loopback", to: &a.overwriteLoopback, on: installs, env: "OVERWRITE_LOOPBACK", help: "replace an existing loopback plugin"},
			{name: "keep-plugins", to: &a.keepPlugins, on: "uninstall-cni", help: "remove the configuration only, and keep the plugins for an agent that may come back"},
			{name: "cni-conf", to: &a.cniConf, on: installs, side: container, help: "file with the CNI configuration to install; empty: none"},
			{name: "cni-conf-key", to: &a.cniConfKey, on: installs, check: configKey,
				help: "key of the resolved configuration whose value is the CNI configuration to install"},
			{name: "cni-template", to: &a.cniTemplate, on: installs, choices: []string{"none", "portmap", "flannel", "aws-cni"},
				help: "generate the CNI configuration: none (the agent's plugin alone), portmap, flannel or aws-cni"},
			{name: "cni-chain", to: &a.cniChain, on: installs, check: network,
				help: "add the agent's plugin to the existing configuration of this network, or of any network: *"},
			{name: "cni-chain-in-place", to: &a.cniChainInPlace, on: installs,
				help: "with --cni-chain: put the plugin into the other CNI's own file instead, again at each apply; uninstall takes it out"},
			{name: "cni-version", to: &a.cniVersion, on: installs, check: func(v string) error { return oneOf(v, cniversion.All.SupportedVersions()) },
				help: "cniVersion of the configuration of --cni-template: 1.0.0 (the default, as Cilium's since 1.20), 0.3.1 (as Cilium's before), or 1.1.0, if the container runtime reports that it calls STATUS: the node is then not ready while the agent does not answer its plugin, on CRI-O (1.32) only until it is ready for the first time, on containerd (2.0.1) always"},
			{name: "cni-log-file", to: &a.cniLogFile, on: installs, side: host, def: cniinstall.CiliumAgent("").LogFile, empty: meansDefault, help: "log file of the agent's plugin"},
			{name: "cni-debug", to: &a.cniDebug, on: installs, help: "turn on debug logs of the agent's plugin"},
			{name: "cni-exclusive", to: &a.cniExclusive, on: installs, help: "set other CNI configurations aside; uninstall restores them"},
			{name: "cni-backup-suffix", to: &a.cniBackupSuffix, on: installs + "cleanup", def: cilium.BackupSuffix, empty: meansDefault, check: suffix,
				help: "suffix of other CNI configurations that are set aside"},
			{name: "cni-conf-name", to: &a.cniConfName, on: installs + "cleanup", env: "CNI_CONF_NAME", def: cilium.ConfName, empty: meansDefault,
				check: cniConfName, help: "name of the CNI configuration file (without --host-proc also that of $CILIUM_CNI_CONF)"},
			{name: "custom-cni-conf", to: &a.userManagedConf, on: installs + undoes + "cleanup", env: "CILIUM_CUSTOM_CNI_CONF",
				help: "another program manages the CNI configuration: neither write nor remove it"},
			{name: "write-cni-conf-when-ready", to: &a.writeWhenReady, on: installs + "uninstall-cni", env: "WRITE_CNI_CONF_WHEN_READY", side: host,
				help: "path where the agent itself writes the CNI configuration once it is ready; if set, nodeinit does not write one"},
			{name: "config-dir", to: &a.gateDir, on: "uninstall-cni", side: container,
				help: "directory of the agent's configuration, one file per key: do nothing unless its cni-uninstall is true (for preStop hooks)"},
			{name: "cni-bin-dir", to: &a.cniBinDir, on: installs + "cleanup", side: host, def: auto, helps: "cni.directory-unusable cri.several cri.unproven",
				check: func(v string) error { return fields(cniinstall.Install{BinDir: dirOr(v, "")}) },
				help:  "directory of CNI plugins; auto: the container runtime's, or " + usualBinDir + " if it reports none (without --host-proc also $CNI_DIR/bin or $HOST_PREFIX" + usualBinDir + ")"},
			{name: "also-cni-bin-dir", to: &a.alsoBinDirs, on: installs, side: host, check: func(v string) error { return fields(cniinstall.Install{AlsoBinDirs: []string{v}}) },
				help: "further directories to install the plugins in; of all the directories, those that cannot be written to are skipped"},
			{name: "cni-conf-dir", to: &a.cniConfDir, on: installs + undoes + "cleanup", side: host, def: auto, helps: "cni.directory-unusable cri.several cri.unproven",
				check: func(v string) error { return fields(cniinstall.Install{ConfDir: dirOr(v, "")}) },
				help:  "directory of CNI configurations; auto: the container runtime's, or " + usualConfDir + " if it reports none (without --host-proc also that of $CILIUM_CNI_CONF, $CNI_CONF_DIR, or $HOST_PREFIX" + usualConfDir + ")"},
			{name: "runtime-endpoint", to: &a.runtimeEndpoint, on: installs + undoes + "cleanup", side: host, helps: "cri.several cri.unproven",
				check: func(v string) error { return absolute(strings.TrimPrefix(v, "unix://")) },
				help:  "socket of the container runtime, such as unix:///run/containerd/containerd.sock (default: the kubelet's, or the only one at a place of a distribution)"},
			{name: "cni-wait", to: &a.cniWait, on: installs, helps: "cni.plugin-missing cni.target-missing",
				help: "how long to wait for a plugin that another CNI installs, or for the network of --cni-chain"},
			{name: "wait-loaded", to: &a.waitLoaded, on: installs, help: "how long to wait until the container runtime has loaded the CNI configuration, if it reports that (CRI-O does not); 0: do not wait"},
		}},
		// Cilium's build-config has most of these, with their defaults and meaning.
		{"configuration", []*flag{
			{name: "source", to: &a.sources, on: resolves, empty: meansNothing, words: inClusterWords, helps: "config.source-missing",
				help: "sources of configuration, in order; a later one overrides an earlier one: config-map:[NAMESPACE/]NAME, cilium-node-config:NAMESPACE[/NAME], node:[NAME], dir:PATH, file:PATH, env:PREFIX"},
			{name: "dest", to: &a.dest, on: resolves, off: offHost + "install-cni guard", side: container, def: "/tmp/cilium/config-map", empty: meansNothing,
				help: "directory to write the resolved configuration to"},
			{name: "watch", to: &a.watch, on: "build-config", help: "keep running: write each change and print what changed, and from which source"},
			{name: "strict", to: &a.strict, on: resolves, help: "fail on an invalid key, instead of leaving it out with a warning"},
			{name: "allow-config-keys", to: &a.allowKeys, on: resolves, words: words, check: configKey,
				help: "keys that sources after the first may set; no others (wins over --deny-config-keys)"},
			{name: "deny-config-keys", to: &a.denyKeys, on: resolves, words: words, check: configKey, help: "keys that sources after the first may not set"},
			{name: "k8s-namespace", to: &a.namespace, on: resolves, env: "CILIUM_K8S_NAMESPACE POD_NAMESPACE",
				check: func(v string) error { return invalid(validation.IsDNS1123Label(v)) }, help: "namespace of sources that do not name one"},
			{name: "enable-k8s", to: &a.enableK8s, on: resolves, def: "true", help: "false: there is no API server, and a source in the cluster is an error"},
			{name: "k8s-kubeconfig-path", to: &a.kubeconfig, on: resolves, side: container, help: "kubeconfig file (default: the pod's service account)"},
			{name: "k8s-api-server-urls", to: &a.apiServers, on: resolves, words: words, check: apiServer, helps: "kube.unavailable",
				help: "URLs of API servers, tried in turn; https is assumed without http:// or https://"},
			{name: "k8s-api-server", to: &a.apiServer, on: resolves, check: apiServer, help: "URL of one API server; the older form of --k8s-api-server-urls"},
			{name: "enable-k8s-host-firewall-bypass", to: &a.firewallBypass, on: resolves, def: "true",
				help: "mark packets to an API server that does not answer otherwise, to pass Cilium's host firewall; where NET_ADMIN is missing they go unmarked"},
			{name: "k8s-retry-spread", to: &a.retrySpread, on: resolves, def: "1m0s",
				help: "nodes retry at a random time within this window when the API server was away; make it shorter in a small cluster"},
			{name: "k8s-client-qps", to: &a.qps, on: resolves, def: "10", help: "requests a second to the API server; negative: no limit"},
			{name: "k8s-client-burst", to: &a.burst, on: resolves, def: "20", help: "requests that may be sent at once before --k8s-client-qps applies"},
			{name: "k8s-client-connection-timeout", to: &a.connectTimeout, on: resolves, def: "30s", help: "time limit for a connection to the API server; 0: that of a request"},
			{name: "k8s-client-connection-keep-alive", to: &a.connectIdle, on: resolves, def: "30s", negative: true,
				help: "time between two keep-alive probes of an idle connection to the API server; negative: none"},
			// Cilium's checks every 30 seconds that the API server is alive (here each request
			// has a time limit), discovers the server's API (here only the sources are
			// requested), and has the flags of all commands of cilium-dbg.
			{name: "debug", short: "D", to: &a.debug, on: "build-config", hidden: true},
			{name: "k8s-heartbeat-timeout", to: new(time.Duration), on: "build-config", hidden: true},
			{name: "enable-k8s-api-discovery", to: new(bool), on: "build-config", hidden: true},
			{name: "host", short: "H", to: new(string), on: "build-config", hidden: true},
			{name: "log-driver", to: &a.ignored, on: "build-config", hidden: true},
			{name: "log-opt", to: &a.ignored, on: "build-config", hidden: true},
		}},
		{"safety", []*flag{
			{name: "dry-run", to: &a.dryRun, on: undoes, help: "print what would be undone, and change nothing; exit status 2 if there is anything"},
			{name: "dry-run", to: &a.dryRun, on: "cleanup", help: "print what would be removed, and change nothing"},
			{name: "force", to: &a.force, on: undoes + "forget", helps: "cleanup.agent-alive cni.in-use",
				help: "act even while an agent is running, including on files that sandboxes still need for their deletion"},
			{name: "force", short: "f", to: &a.force, on: "cleanup", help: "do not ask for confirmation"},
			{name: "force", to: &a.force, on: "release", helps: "cleanup.agent-alive", help: "also while the agent is running"},
			{name: "while-alive", to: &a.whileAlive, on: "cleanup", helps: "cleanup.agent-alive cni.in-use",
				help: "remove even while the agent is running, including files that sandboxes still need for their deletion"},
			{name: "damaged", to: &a.damaged, on: "forget", helps: "ledger.unreadable",
				help: "drop the records that cannot be read, of all agents, and keep the others: also where it is the first line of the file that is damaged, and with it the owners"},
			{name: "any-owner", to: &a.anyOwner, on: undoes + "forget", helps: "ledger.not-owner", help: "act even if the node has another owner for this agent"},
			{name: "all-agents", to: &a.allAgents, on: "uninstall",
				help: "undo the changes of every agent in the state directory, whatever its owner, unless one of them is running"},
			{name: "accept-kept", to: &a.acceptKept, on: "uninstall", helps: "ledger.changed",
				help: "leave for good objects that are kept because another program has changed them, once all else is undone: they are no error, and status shows those that carry the agent's name"},
			{name: "take-over", to: &a.takeOver, on: records, helps: "ledger.not-owner ledger.two-agents", help: "become the owner again after another owner has applied, or although another agent of this name is alive"},
			{name: "override", to: &a.override, on: records, helps: "ledger.conflict",
				help: "override other agents of the node that want an object to be different; uninstall restores the state that they want"},
			{name: "adopt", to: &a.adopt, on: records, off: "guard", // which claims nothing
				help: "adopt files as the agent's own, so that uninstall removes them: those that it names and that exist as wanted when it first claims the node, such as those of an installer that it replaces; mounts are not adopted"},
			{name: "lock-timeout", to: &a.lockTimeout, on: changes, def: "1m0s", helps: "lock.held",
				help: "how long to wait for another run on this node to finish; 0: do not wait"},
			{name: "timeout", to: &a.timeout, off: offAll, def: "5m0s", help: "give up after this long; 0: never"},
		}},
		{"output", []*flag{
			{name: "output", to: &a.output, on: reports + "explain cleanup status release", def: formatText, choices: []string{formatText, formatJSON},
				help: "text, or json: one document on standard output"},
			{name: "output-file", short: "o", to: &a.planFile, on: "cleanup", side: container, empty: meansNothing,
				help: "with --dry-run: also write the items that would be removed to this new YAML file, for review and for --plan on many nodes"},
			{name: "diff", to: &a.diff, on: "check " + undoes,
				help: "also print how the contents of files would change, as a unified diff; secrets are masked, and in JSON it is the field diff (of uninstall: with --dry-run)"},
			{name: "timeline", to: &a.timelineFile, on: reports, side: container, check: ending(".svg"), help: "also draw a timeline of the run into this file, an .svg"},
			{name: "report-node", to: &a.reportNode, on: applies + "uninstall",
				help: "report the result to the cluster: by a condition and an annotation of the Node, sent when they change, and an Event for each new failure (needs get on nodes, patch on nodes/status, and create on events in the namespace default); a failure to report is a warning"},
			{name: "report-metrics", to: &a.reportMetrics, on: applies + "uninstall", side: host, check: func(v string) error { return cmp.Or(absolute(v), ending(".prom")(v)) },
				help: "also write the result into this file for node_exporter's textfile collector: a .prom; each agent has its own"},
			{name: "every", to: &a.every, on: "check",
				help: "keep checking at about this interval, at most a fifth shorter, until asked to end; --timeout bounds each check, and --report-node and --report-metrics report it; 0: check once"},
			{name: "show-values", to: &a.showValues, on: resolves, help: "print the values of keys that look secret, such as etcd-password, instead of masking them"},
			{name: "quiet", short: "q", to: &a.quiet, off: offAll, help: "print only errors, and the document of --output=json"},
			{name: "log-format", to: &a.logFormat, off: offAll, def: formatText, choices: []string{formatText, formatJSON}, help: "text or json"},
			{name: "log-level", to: &a.logLevel, off: offAll, def: "warn", choices: []string{"warn", "info", "debug", "error"}, help: "debug, info, warn or error; with --output=json info, for the progress, if not given"},
		}},
	}
}
