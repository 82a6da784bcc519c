// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/sysctl"
)

// options are the values of all flags; a command registers those it has.
type options struct {
	hostProc, configFile, logFormat, logLevel, output string
	here, debug                                       bool

	sources, allowKeys, denyKeys []string
	nodeName, namespace, dest    string
	strict, showValues           bool
	kubeconfig, apiServer        string
	apiServers                   []string
	retrySpread                  time.Duration
	enableK8s, firewallBypass    bool
	qps                          float32
	burst                        int
	connectTimeout, connectIdle  time.Duration

	cgroupRoot, cgroupRootKey, bpfRoot, bpfFallback                            string
	cgroupRepair, bpfShared                                                    bool
	modules                                                                    []string
	sysctls                                                                    []string
	sysctlConfDir, sysctlConfFile, sysctlUnit                                  string
	cniBinDir, cniConf, cniConfDir, cniConfName                                string
	plugins, optionalPlugins, pluginsElsewhere, alsoBinDirs                    []string
	cniConfKey, cniChain, cniTemplate, cniVersion, cniLogFile, cniBackupSuffix string
	cniDebug, cniExclusive, cniChainInPlace                                    bool
	cniWait, kubeProxyWait                                                     time.Duration
	overwriteLoopback, overwritePlugins, userManagedConf                       bool
	keepPlugins                                                                bool
	binDirs, confDirs, notes                                                   []string // that search has found
	unlisted                                                                   error    // of sandboxes
	writeWhenReady, hostPrefix, cniDir, cniConfPath, runtimeEndpoint           string
	waitLoaded                                                                 time.Duration
	stateDir, agent, owner                                                     string
	takeOver, anyOwner, force, acceptKept, allAgents                           bool
	adopt, override, damaged                                                   bool
	timeout, lockTimeout                                                       time.Duration
	skip, only, ignorePreflight                                                []string
	preflight                                                                  bool
	reportNode                                                                 bool
	reportMetrics                                                              string
	every                                                                      time.Duration
}

const (
	formatText = "text"
	formatJSON = "json"
)

func (a *app) commonFlags(f *pflag.FlagSet) {
	f.StringVar(&a.hostProc, "host-proc", "", "where the host's /proc is mounted in this container, such as /hostproc; empty: act in this process's own namespaces")
	f.BoolVar(&a.here, "here", false, "without --host-proc, in a container: change the container itself, not its host")
	f.StringVar(&a.configFile, "config", "", "YAML file of flags, one FLAG: VALUE per line; the command line and the environment take precedence")
	f.DurationVar(&a.timeout, "timeout", 5*time.Minute, "give up after this long; 0: never")
	f.Var(newChoice(&a.logFormat, formatText, formatJSON), "log-format", "text or json")
	f.Var(newChoice(&a.logLevel, "warn", "info", "debug", "error"), "log-level", "debug, info, warn or error")
}

// reportFlags are of commands whose report is shown.
func (a *app) reportFlags(f *pflag.FlagSet) {
	a.outputFlag(f)
	f.Var(&a.timeline, "timeline", "also draw a timeline of the run into this file, an .svg")
}

func (a *app) outputFlag(f *pflag.FlagSet) {
	f.Var(newChoice(&a.output, formatText, formatJSON), "output", "text, or json: one document on standard output")
}

func (a *app) sourceFlags(f *pflag.FlagSet, sources ...string) {
	f.StringSliceVar(&a.sources, "source", sources, "sources of configuration, in order; a later one overrides an earlier one: config-map:[NAMESPACE/]NAME, cilium-node-config:NAMESPACE[/NAME], node:[NAME], dir:PATH, file:PATH, env:PREFIX")
	f.StringSliceVar(&a.allowKeys, "allow-config-keys", nil, "keys that sources after the first may set; no others (wins over --deny-config-keys)")
	f.StringSliceVar(&a.denyKeys, "deny-config-keys", nil, "keys that sources after the first may not set")
	f.BoolVar(&a.strict, "strict", false, "fail on an invalid key, instead of leaving it out with a warning")
	f.BoolVar(&a.showValues, "show-values", false, "print the values of keys that look secret, such as etcd-password, instead of masking them")
	f.StringVar(&a.nodeName, "node-name", "", "name of this node in the cluster (default: the host name)")
	f.StringVar(&a.namespace, "k8s-namespace", "", "namespace of sources that do not name one")
	// The flags, their defaults and meaning are those of Cilium's build-config, and further ones.
	f.StringVar(&a.kubeconfig, "k8s-kubeconfig-path", "", "kubeconfig file (default: the pod's service account)")
	f.StringSliceVar(&a.apiServers, "k8s-api-server-urls", nil, "URLs of API servers, tried in turn; https is assumed without http:// or https://")
	f.StringVar(&a.apiServer, "k8s-api-server", "", "URL of one API server; the older form of --k8s-api-server-urls")
	f.DurationVar(&a.retrySpread, "k8s-retry-spread", time.Minute, "nodes retry at a random time within this window when the API server was away; make it shorter in a small cluster")
	f.BoolVar(&a.enableK8s, "enable-k8s", true, "false: there is no API server, and a source in the cluster is an error")
	f.BoolVar(&a.firewallBypass, "enable-k8s-host-firewall-bypass", true, "mark packets to an API server that does not answer otherwise, to pass Cilium's host firewall; where NET_ADMIN is missing they go unmarked")
	f.Float32Var(&a.qps, "k8s-client-qps", 10, "requests a second to the API server; negative: no limit")
	f.IntVar(&a.burst, "k8s-client-burst", 20, "requests that may be sent at once before --k8s-client-qps applies")
	f.DurationVar(&a.connectTimeout, "k8s-client-connection-timeout", 30*time.Second, "time limit for a connection to the API server; 0: that of a request")
	f.DurationVar(&a.connectIdle, "k8s-client-connection-keep-alive", 30*time.Second, "time between two keep-alive probes of an idle connection to the API server; negative: none")
	f.StringVar(&a.dest, "dest", "/tmp/cilium/config-map", "directory to write the resolved configuration to, in this container")
}

// ciliumCgroupRoot is where Cilium's agent looks for cgroup2.
const ciliumCgroupRoot = "/run/cilium/cgroupv2"

func (a *app) cgroupFlags(f *pflag.FlagSet) {
	f.StringVar(&a.cgroupRoot, "cgroup-root", ciliumCgroupRoot, "where to mount cgroup2, on the host")
	f.BoolVar(&a.cgroupRepair, "cgroup-repair", false, "replace a cgroup2 mount that does not show the host's root cgroup")
}

func (a *app) bpfFlags(f *pflag.FlagSet) {
	f.StringVar(&a.bpfRoot, "bpf-root", "/sys/fs/bpf", "where to mount the BPF file system, on the host")
	f.StringVar(&a.bpfFallback, "bpf-fallback", "", "where to mount it instead if another file system is mounted on --bpf-root; empty: that is an error")
}

func (a *app) bpfMountFlags(f *pflag.FlagSet) {
	a.bpfFlags(f)
	f.BoolVar(&a.bpfShared, "bpf-shared", false, "fail unless the mount will be visible on the host (for a pod without --host-proc)")
}

const defaultSysctlConfDir = "/etc/sysctl.d"

func (a *app) sysctlPlaceFlags(f *pflag.FlagSet) {
	f.StringVar(&a.sysctlConfDir, "sysctl-conf-dir", defaultSysctlConfDir, "directory of the sysctl drop-in, on the host; empty: no file, only the values")
	f.StringVar(&a.sysctlConfFile, "sysctl-config-file", sysctl.Cilium().Name, "name of the sysctl drop-in")
}

func (a *app) sysctlFlags(f *pflag.FlagSet) {
	a.sysctlPlaceFlags(f)
	f.StringArrayVar(&a.sysctls, "sysctl", nil, "KEY=VALUE for the sysctl drop-in, as in sysctl.d(5); repeatable (default: reverse path filtering off for Cilium's links)")
}

// cniPlaceFlags set the directories of CNI files.
func (a *app) cniPlaceFlags(f *pflag.FlagSet) {
	f.StringVar(&a.cniBinDir, "cni-bin-dir", auto, "directory of CNI plugins, on the host; auto: the container runtime's, or "+usualBinDir+" if it reports none")
	f.StringVar(&a.cniConfDir, "cni-conf-dir", auto, "directory of CNI configurations, on the host; auto: the container runtime's, or "+usualConfDir+" if it reports none")
	f.StringVar(&a.runtimeEndpoint, "runtime-endpoint", "", "socket of the container runtime, on the host, such as unix:///run/containerd/containerd.sock (default: the kubelet's, or the only one at a place of a distribution)")
	f.StringVar(&a.cniConfName, "cni-conf-name", cniinstall.Cilium("").ConfName, "name of the CNI configuration file")
	f.StringVar(&a.cniBackupSuffix, "cni-backup-suffix", "", "suffix of other CNI configurations that are set aside (default "+cniinstall.Cilium("").BackupSuffix+")")
	f.BoolVar(&a.userManagedConf, "custom-cni-conf", false, "another program manages the CNI configuration: neither write nor remove it")
	f.StringVar(&a.hostPrefix, "host-prefix", "", "where the host's root is mounted; prefix of the default CNI directories")
	f.StringVar(&a.cniDir, "cni-dir", "", "parent directory of the directory bin for CNI plugins")
	f.StringVar(&a.cniConfPath, "cni-conf-path", "", "path of the CNI configuration")
	for _, name := range []string{"host-prefix", "cni-dir", "cni-conf-path"} {
		must(f.MarkHidden(name)) // they exist for the environment of older installers
	}
}

func (a *app) cniFlags(f *pflag.FlagSet) {
	a.cniPlaceFlags(f)
	f.StringSliceVar(&a.plugins, "plugins", nil, "directories of CNI plugins to install, in this container: their executable files; of two with the same name, the one in the first directory is installed")
	f.StringSliceVar(&a.optionalPlugins, "optional-plugins", nil, "plugins that may be missing, including loopback if pods need none from this node (not needed for a runtime that reports so)")
	f.StringSliceVar(&a.pluginsElsewhere, "plugins-elsewhere", nil, "plugins that the container runtime finds elsewhere, such as in the node's image: neither searched nor asked for their versions")
	f.StringSliceVar(&a.alsoBinDirs, "also-cni-bin-dir", nil, "further directories to install the plugins in, on the host; of all the directories, those that cannot be written to are skipped")
	f.StringVar(&a.cniConf, "cni-conf", "", "file with the CNI configuration to install, in this container; empty: none")
	f.StringVar(&a.cniConfKey, "cni-conf-key", "", "key of the resolved configuration whose value is the CNI configuration to install")
	f.StringVar(&a.cniChain, "cni-chain", "", "add the agent's plugin to the existing configuration of this network, or of any network: *")
	f.BoolVar(&a.cniChainInPlace, "cni-chain-in-place", false, "with --cni-chain: put the plugin into the other CNI's own file instead, again at each apply; uninstall takes it out")
	f.Var(newChoice(&a.cniTemplate, "", "none", "portmap", "flannel", "aws-cni"), "cni-template", "generate the CNI configuration: none (the agent's plugin alone), portmap, flannel or aws-cni")
	f.StringVar(&a.cniVersion, "cni-version", "", "cniVersion of the configuration of --cni-template: 1.0.0 (the default, as Cilium's since 1.20), 0.3.1 (as Cilium's before), or 1.1.0, if the container runtime reports that it calls STATUS (containerd 2.0.1, CRI-O 1.33): the node is then not ready while the agent does not answer its plugin")
	f.StringVar(&a.cniLogFile, "cni-log-file", "", "log file of the agent's plugin, on the host (default "+cniinstall.CiliumAgent("").LogFile+")")
	f.BoolVar(&a.cniDebug, "cni-debug", false, "turn on debug logs of the agent's plugin")
	f.BoolVar(&a.cniExclusive, "cni-exclusive", false, "set other CNI configurations aside; uninstall restores them")
	f.DurationVar(&a.cniWait, "cni-wait", 0, "how long to wait for a plugin that another CNI installs, or for the network of --cni-chain")
	f.DurationVar(&a.waitLoaded, "wait-loaded", 0, "how long to wait until the container runtime has loaded the CNI configuration; 0: do not wait")
	f.BoolVar(&a.overwriteLoopback, "overwrite-loopback", false, "replace an existing loopback plugin")
	f.BoolVar(&a.overwritePlugins, "overwrite-plugins", true, "replace existing plugins")
	f.StringVar(&a.writeWhenReady, "write-cni-conf-when-ready", "", "path where the agent itself writes the CNI configuration once it is ready; if set, nodeinit does not write one")
}

const defaultStateDir = "/var/lib/slipway"

// stateFlags are of commands that record changes.
func (a *app) stateFlags(f *pflag.FlagSet) {
	a.recordFlags(f)
	a.lockFlags(f)
	f.BoolVar(&a.takeOver, "take-over", false, "become the owner again after another owner has applied")
	f.BoolVar(&a.override, "override", false, "override other agents of the node that want an object to be different; uninstall restores the state that they want")
	f.BoolVar(&a.adopt, "adopt", false, "adopt files as the agent's own, so that uninstall removes them: those that it names and that exist as wanted when it first claims the node, such as those of an installer that it replaces; mounts are not adopted")
}

// recordFlags say where changes are recorded, and for which agent.
func (a *app) recordFlags(f *pflag.FlagSet) {
	f.StringVar(&a.agent, "agent", cleanup.Cilium().Agent, "name of the agent: each on a node has records, an owner and an uninstall of its own; mounts and the sysctl drop-in carry its name")
	f.StringVar(&a.stateDir, "state-dir", defaultStateDir, "directory of the records that uninstall undoes, on the host; empty: record nothing, so that nothing can be undone")
}

// lockFlags are of commands that change something.
func (a *app) lockFlags(f *pflag.FlagSet) {
	f.StringVar(&a.owner, "owner", "", "owner on whose behalf this runs, such as a pod's UID: the last owner to apply owns the node, and an earlier one can no longer change it; empty: none")
	f.DurationVar(&a.lockTimeout, "lock-timeout", time.Minute, "how long to wait for another run on this node to finish; 0: do not wait")
}

// must panics on errors that only a bug in this program can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// olderInstallerPaths derives the CNI folders as shell installers do, which know the
// host's root by a prefix, unless a flag sets it.
func (a *app) olderInstallerPaths(f *pflag.FlagSet) {
	if a.hostProc != "" {
		if a.hostPrefix+a.cniDir+a.cniConfPath != "" {
			a.logger().Warn("HOST_PREFIX, CNI_DIR and CILIUM_CNI_CONF have no use with --host-proc: paths are the host's own")
		}
		return
	}
	derive := func(to *string, name, value string) {
		if flag := f.Lookup(name); flag != nil && !flag.Changed {
			*to = value
		}
	}
	if a.hostPrefix != "" {
		derive(&a.cniBinDir, "cni-bin-dir", below(a.hostPrefix, usualBinDir))
		derive(&a.cniConfDir, "cni-conf-dir", below(a.hostPrefix, usualConfDir))
	}
	if a.cniDir != "" {
		derive(&a.cniBinDir, "cni-bin-dir", filepath.Join(a.cniDir, "bin"))
	}
	if a.cniConfPath != "" {
		derive(&a.cniConfDir, "cni-conf-dir", filepath.Dir(a.cniConfPath))
		derive(&a.cniConfName, "cni-conf-name", filepath.Base(a.cniConfPath))
	}
}

func (a *app) logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		level = slog.LevelWarn
	}
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: shown}
	if a.logFormat == formatJSON {
		return slog.New(slog.NewJSONHandler(a.stderr, o))
	}
	return slog.New(slog.NewTextHandler(a.stderr, o))
}

// waits logs what is waited for, by a plan or beside it.
func (a *app) waits() *bootstrap.Trace {
	return &bootstrap.Trace{Waiting: func(_ context.Context, step, what string, _ time.Duration) {
		var attrs []any
		if step != "" {
			attrs = append(attrs, "step", step)
		}
		a.logger().Warn("waiting for "+bootstrap.OneLine(what), attrs...)
	}}
}

// shown makes one line of external text for a log.
func shown(_ []string, attr slog.Attr) slog.Attr {
	switch v := attr.Value.Any().(type) {
	case string:
		attr.Value = slog.StringValue(bootstrap.OneLine(v))
	case error:
		attr.Value = slog.StringValue(bootstrap.OneLine(v.Error()))
	}
	return attr
}

// choice is a flag with a few possible values; the first is the default, and "" means none.
type choice struct {
	value   *string
	allowed []string
}

func newChoice(value *string, allowed ...string) *choice {
	if *value = allowed[0]; allowed[0] == "" {
		allowed = allowed[1:]
	}
	return &choice{value, allowed}
}

func (c *choice) String() string     { return *c.value }
func (c *choice) Type() string       { return strings.Join(c.allowed, "|") }
func (c *choice) Set(s string) error { *c.value = s; return nil } // checkGiven checks it
