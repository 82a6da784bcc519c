// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// options are the values of all flags; a command registers those it has.
type options struct {
	hostProc, configFile, logFormat, logLevel, output string
	here                                              bool

	sources, allowKeys, denyKeys          []string
	nodeName, namespace, kubeconfig, dest string
	apiServers                            []string
	apiServer                             string
	retrySpread                           time.Duration
	strict, showValues                    bool

	cgroupRoot, bpfRoot, bpfFallback                               string
	cgroupRepair, bpfShared                                        bool
	sysctls                                                        []string
	sysctlConfDir, sysctlConfFile, sysctlUnit                      string
	plugins, cniBinDir, cniConf, cniConfDir, cniConfName           string
	cniConfKey, cniChain, cniTemplate, cniLogFile, cniBackupSuffix string
	cniDebug, cniExclusive                                         bool
	cniWait                                                        time.Duration
	overwriteLoopback, overwritePlugins, userManagedConf           bool
	writeWhenReady, hostPrefix, cniDir                             string
	stateDir, owner                                                string
	takeOver, anyOwner, force                                      bool
	timeout, lockTimeout                                           time.Duration
	skip, only                                                     []string
}

const (
	formatText = "text"
	formatJSON = "json"
)

func (a *app) commonFlags(f *pflag.FlagSet) {
	f.StringVar(&a.hostProc, "host-proc", "", "where the host's /proc is mounted, such as /hostproc; empty: act in the namespaces this process is in")
	f.BoolVar(&a.here, "here", false, "without --host-proc, in a container: act on the container itself, and not on its host")
	f.StringVar(&a.configFile, "config", "", "YAML file with values for flags, one FLAG: VALUE a line; flags and environment win over it")
	f.DurationVar(&a.timeout, "timeout", 5*time.Minute, "how long the command may take in all; 0: as long as it wants")
	f.Var(newChoice(&a.logFormat, formatText, formatJSON), "log-format", "text or json")
	f.Var(newChoice(&a.logLevel, "warn", "info", "debug", "error"), "log-level", "debug, info, warn or error")
}

func (a *app) outputFlag(f *pflag.FlagSet) {
	f.Var(newChoice(&a.output, formatText, formatJSON), "output", "text, or json: one document on standard output")
}

func (a *app) sourceFlags(f *pflag.FlagSet, sources ...string) {
	f.StringSliceVar(&a.sources, "source", sources, "where configuration comes from, in order, a later one over an earlier one: config-map:[NAMESPACE/]NAME, cilium-node-config:NAMESPACE[/NAME], node:[NAME], dir:PATH, file:PATH, env:PREFIX")
	f.StringSliceVar(&a.allowKeys, "allow-config-keys", nil, "the only keys that sources after the first may set; wins over --deny-config-keys")
	f.StringSliceVar(&a.denyKeys, "deny-config-keys", nil, "keys that sources after the first may not set")
	f.BoolVar(&a.strict, "strict", false, "fail on a key that is none, instead of leaving it out")
	f.BoolVar(&a.showValues, "show-values", false, "show values of keys that look secret, such as etcd-password, where they are printed for people")
	f.StringVar(&a.nodeName, "node-name", "", "the node's name in the cluster (default: the host name)")
	f.StringVar(&a.namespace, "k8s-namespace", "", "the namespace of sources that name none")
	f.StringVar(&a.kubeconfig, "k8s-kubeconfig-path", "", "kubeconfig to read the cluster with (default: the pod's service account)")
	f.StringSliceVar(&a.apiServers, "k8s-api-server-urls", nil, "API servers, tried in turn")
	f.StringVar(&a.apiServer, "k8s-api-server", "", "one API server; the older form of --k8s-api-server-urls")
	f.DurationVar(&a.retrySpread, "k8s-retry-spread", time.Minute, "over how long nodes come back to an API server that was away; shorter for a cluster of few nodes")
	f.StringVar(&a.dest, "dest", "/tmp/cilium/config-map", "directory to write the resolved configuration to, on this side")
}

func (a *app) cgroupFlags(f *pflag.FlagSet) {
	f.StringVar(&a.cgroupRoot, "cgroup-root", "/run/cilium/cgroupv2", "where cgroup2 is to be mounted, on the host")
	f.BoolVar(&a.cgroupRepair, "cgroup-repair", false, "unmount a cgroup2 that is there and does not show the host's root, and mount anew")
}

func (a *app) bpfFlags(f *pflag.FlagSet) {
	f.StringVar(&a.bpfRoot, "bpf-root", "/sys/fs/bpf", "where the BPF file system is to be mounted, on the host")
	f.StringVar(&a.bpfFallback, "bpf-fallback", "", "where else, if another file system occupies --bpf-root; empty: that is an error")
}

func (a *app) bpfMountFlags(f *pflag.FlagSet) {
	a.bpfFlags(f)
	f.BoolVar(&a.bpfShared, "bpf-shared", false, "fail unless a new mount will be seen outside of this mount namespace (for a pod without --host-proc)")
}

func (a *app) sysctlPlaceFlags(f *pflag.FlagSet) {
	f.StringVar(&a.sysctlConfDir, "sysctl-conf-dir", "/etc/sysctl.d", "directory of the sysctl drop-in, on the host")
	f.StringVar(&a.sysctlConfFile, "sysctl-config-file", "99-zzz-override_cilium.conf", "name of the sysctl drop-in")
}

func (a *app) sysctlFlags(f *pflag.FlagSet) {
	a.sysctlPlaceFlags(f)
	f.StringArrayVar(&a.sysctls, "sysctl", nil, "a line of the sysctl drop-in, KEY=VALUE as in sysctl.d(5); repeatable (default: the reverse path filter off, for Cilium's links)")
}

func (a *app) systemdFlags(f *pflag.FlagSet) {
	f.StringVar(&a.sysctlUnit, "systemd-sysctl-unit", "systemd-sysctl.service", "the systemd unit that applies sysctl drop-ins")
}

// cniPlaceFlags say where CNI files are.
func (a *app) cniPlaceFlags(f *pflag.FlagSet) {
	f.StringVar(&a.cniBinDir, "cni-bin-dir", "/opt/cni/bin", "where CNI plugins go, on the host")
	f.StringVar(&a.cniConfDir, "cni-conf-dir", "/etc/cni/net.d", "where the CNI configuration goes, on the host")
	f.StringVar(&a.cniConfName, "cni-conf-name", "05-cilium.conflist", "name of the CNI configuration file")
	f.StringVar(&a.cniBackupSuffix, "cni-backup-suffix", "", "what is put behind the names of those (default .cilium_bak)")
	f.BoolVar(&a.userManagedConf, "custom-cni-conf", false, "the CNI configuration is somebody else's: neither write nor remove it")
	f.StringVar(&a.hostPrefix, "host-prefix", "", "where the host's root is mounted; put before the default CNI folders")
	f.StringVar(&a.cniDir, "cni-dir", "", "the folder above the CNI plugins' (their folder is bin in it)")
	for _, name := range []string{"host-prefix", "cni-dir"} {
		must(f.MarkHidden(name)) // they exist for the environment of older installers
	}
}

func (a *app) cniFlags(f *pflag.FlagSet) {
	a.cniPlaceFlags(f)
	f.StringVar(&a.plugins, "plugins", "", "folder of CNI plugins to install, on this side; empty: none")
	f.StringVar(&a.cniConf, "cni-conf", "", "CNI configuration to install, a file on this side; empty: none")
	f.StringVar(&a.cniConfKey, "cni-conf-key", "", "CNI configuration to install, the value of this key of the resolved configuration")
	f.StringVar(&a.cniChain, "cni-chain", "", "join the agent's plugin to the configuration of the network of this name, or of any: *")
	f.StringVar(&a.cniTemplate, "cni-template", "", "make the CNI configuration: none (the agent alone), portmap, flannel or aws-cni")
	f.StringVar(&a.cniLogFile, "cni-log-file", "", "where the agent's plugin logs to, on the host (default /var/run/cilium/cilium-cni.log)")
	f.BoolVar(&a.cniDebug, "cni-debug", false, "have the agent's plugin log more")
	f.BoolVar(&a.cniExclusive, "cni-exclusive", false, "set other CNI configurations aside; uninstall brings them back")
	f.DurationVar(&a.cniWait, "cni-wait", 0, "how long to wait for another CNI's plugin, or for the network to join")
	f.BoolVar(&a.overwriteLoopback, "overwrite-loopback", false, "install the loopback plugin over one that is there")
	f.BoolVar(&a.overwritePlugins, "overwrite-plugins", true, "install plugins over those that are there")
	f.StringVar(&a.writeWhenReady, "write-cni-conf-when-ready", "", "the agent itself writes the CNI configuration, to this path, when it is ready: do not write it")
}

func (a *app) stateFlags(f *pflag.FlagSet) {
	f.StringVar(&a.stateDir, "state-dir", "/var/lib/slipway", "where what has to be undone is recorded, on the host; empty: record nothing")
	f.StringVar(&a.owner, "owner", "", "on whose behalf, such as a pod's UID: who has applied last owns the node, and an older owner's apply and uninstall change nothing; empty: nobody in particular")
	f.BoolVar(&a.takeOver, "take-over", false, "own the node also where somebody else has applied after this owner")
	f.DurationVar(&a.lockTimeout, "lock-timeout", time.Minute, "how long to wait for another run on this node; 0: not at all")
}

func (a *app) stepFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&a.skip, "skip", nil, "steps to leave out")
	f.StringSliceVar(&a.only, "only", nil, "the only steps to take")
}

// must is for what cannot fail unless this program is wrong.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// olderInstallerPaths derives the CNI folders as shell installers do, which
// know the host's root by a prefix, where no flag says otherwise.
func (a *app) olderInstallerPaths(f *pflag.FlagSet) {
	if a.hostProc != "" {
		return // paths are the host's own
	}
	unset := func(name string) bool { flag := f.Lookup(name); return flag != nil && !flag.Changed }
	if unset("cni-bin-dir") {
		switch {
		case a.cniDir != "":
			a.cniBinDir = filepath.Join(a.cniDir, "bin")
		case a.hostPrefix != "":
			a.cniBinDir = filepath.Join(a.hostPrefix, a.cniBinDir)
		}
	}
	if unset("cni-conf-dir") && a.hostPrefix != "" {
		a.cniConfDir = filepath.Join(a.hostPrefix, a.cniConfDir)
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

// shown makes a line of what a log says of the outside.
func shown(_ []string, attr slog.Attr) slog.Attr {
	switch v := attr.Value.Any().(type) {
	case string:
		attr.Value = slog.StringValue(oneLine(v))
	case error:
		attr.Value = slog.StringValue(oneLine(v.Error()))
	}
	return attr
}

// choice is a flag with a few possible values, of which the first is the default.
type choice struct {
	value   *string
	allowed []string
}

func newChoice(value *string, allowed ...string) *choice {
	*value = allowed[0]
	return &choice{value, allowed}
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return "string" }
func (c *choice) Set(s string) error {
	if !slices.Contains(c.allowed, s) {
		return fmt.Errorf("must be one of %s", strings.Join(c.allowed, ", "))
	}
	*c.value = s
	return nil
}
