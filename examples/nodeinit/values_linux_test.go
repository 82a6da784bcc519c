// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	main "github.com/slipway-dev/slipway/examples/nodeinit"
)

// badValues are values of flags that mean nothing, beside those that are wrong by the
// flag's type. Where there is none, any text may be meant. Switches have none.
var badValues = map[string][]string{
	"agent":                            {"", "Cilium", "a/b", "a b", strings.Repeat("a", 64)},
	"allow-config-keys":                {"a/b", "..", "a ../b"},
	"also-cni-bin-dir":                 {"opt/bin", "/etc"},
	"bpf-fallback":                     {"run/bpf"},
	"bpf-root":                         {"sys/fs/bpf", "./bpf"},
	"cgroup-root":                      {"run/cgroup"},
	"cgroup-root-key":                  {"a/b"},
	"cni-backup-suffix":                {".conf", ".conflist", "bak", ".x/y"},
	"cni-bin-dir":                      {"bin", "/usr/bin"},
	"cni-chain":                        {"a/b", "a b", "-"},
	"cni-conf":                         nil,
	"cni-conf-dir":                     {"net.d", "/etc"},
	"cni-conf-key":                     {"a/b"},
	"cni-conf-name":                    {"../x.conflist", "x", "a/b.conf", ".."},
	"cni-conf-path":                    {"net.d/x.conf", "/etc/cni/net.d/", "/etc/cni/net.d/x"},
	"cni-dir":                          {"opt/cni"},
	"cni-log-file":                     {"log"},
	"cni-template":                     {"portmpa", "Flannel"},
	"cni-version":                      {"one", "1.0", "1.0.00", "9.9.9"},
	"cni-wait":                         {"-1s"},
	"config":                           {"/run/missing.yaml", "/run"},
	"config-dir":                       nil,
	"deny-config-keys":                 {"a/b", "a b/c"},
	"dest":                             {""},
	"drop-capabilities":                {"SYS_ADMINS", "21"},
	"eni-tables":                       {"-1", "main"},
	"every":                            {"-1s"},
	"exception":                        {"link"},
	"host":                             nil,
	"host-prefix":                      {"host"},
	"host-proc":                        {"hostproc", "."},
	"k8s-api-server":                   {"ftp://x", "https://", "https://x/path"},
	"k8s-api-server-urls":              {"ftp://x", "https://x/path", "https://a https://b/c"},
	"ignore-preflight":                 {"kernal", "kernel, kernal"},
	"k8s-client-burst":                 {"-1", "1.5"},
	"k8s-client-connection-keep-alive": nil,
	"k8s-client-connection-timeout":    {"-1s"},
	"k8s-client-qps":                   {"NaN", "Inf"},
	"k8s-heartbeat-timeout":            {"-1s"},
	"k8s-kubeconfig-path":              nil,
	"k8s-namespace":                    {"a/b", "Kube", "a.b"},
	"k8s-retry-spread":                 {"-1s"},
	"kernel-modules":                   {"a/b", ".."},
	"lock-timeout":                     {"-1ns"},
	"log-driver":                       nil,
	"log-format":                       {"xml", ""},
	"log-level":                        {"warning"},
	"log-opt":                          nil,
	"node-name":                        {"a/b", ".."},
	"only":                             {"bpf", "", "cni, sysctl"},
	"optional-plugins":                 {"a/b"},
	"output":                           {"xml", "JSON"},
	"output-file":                      {""},
	"owner":                            {"caf\xe9"},
	"ownership":                        {""},
	"plan":                             {""},
	"plugins":                          nil,
	"plugins-elsewhere":                {"a/b"},
	"report-metrics":                   {"x.prom", "/run/x.txt"},
	"runtime-endpoint":                 {"containerd.sock", "tcp://localhost:1"},
	"skip":                             {"bpf"},
	"source":                           {",", "configmap:a/b", "file:", "node:a/b/c"},
	"state-dir":                        {"state", "/"},
	"sysctl":                           {"bad line", "net/../../etc/passwd = x"},
	"sysctl-conf-dir":                  {"sysctl.d"},
	"sysctl-config-file":               {"../evil.conf", "x", ".conf"},
	"systemd-sysctl-unit":              {"a/b.service"},
	"timeline":                         {"x.png"},
	"timeout":                          {"-5s"},
	"wait-for-kube-proxy":              {"-1s"},
	"wait-loaded":                      {"-1s"},
	"write-cni-conf-when-ready":        {"net.d/x.conflist"},
}

// badOfType are values that no flag of the type has.
var badOfType = map[string]string{"bool": "perhaps", "duration": "soon", "int": "many", "float32": "fast", "uintSlice": "main"}

// operands are what commands need beside flags.
var operands = map[string][]string{"run": {"--", "true"}, "forget": {"object"}}

// Every flag of every command is checked before anything is done: a value that means
// nothing is a usage error that names the flag.
func TestPLAN5_ABadValueOfAnyFlagIsAUsageError(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	eachCommand(main.Commands(), func(c *cobra.Command) {
		command := strings.Fields(c.CommandPath())[1:]
		var lines [][]string
		for _, flag := range flagsOf(c) {
			bad, known := badValues[flag.Name]
			require.True(t, known || flag.Value.Type() == "bool", "say in badValues which values of --%s mean nothing", flag.Name)
			if c.Parent() != nil && c.Parent().Name() == "completion" {
				bad = nil // what else is said is for other shells
			}
			if wrong := badOfType[flag.Value.Type()]; wrong != "" {
				bad = append([]string{wrong}, bad...)
			}
			if seen[flag.Name] && len(lines) > 0 {
				continue // it is one check for all commands, and this one has shown that it checks
			}
			seen[flag.Name] = true
			for _, value := range bad {
				lines = append(lines, slices.Concat(command, []string{"--" + flag.Name + "=" + value}, operands[c.Name()]))
			}
		}
		t.Run(c.CommandPath(), func(t *testing.T) {
			n := newParallelNode(t)
			defer n.asItWas()()
			for _, args := range lines {
				o := n.run(args...)
				flag, _, _ := strings.Cut(args[len(command)], "=")
				require.Equal(t, 64, o.code, "%s: %s%s", args, o.stdout, o.stderr)
				require.Contains(t, o.stderr, flag, args)
				require.Contains(t, o.stderr, "nodeinit: see "+c.CommandPath()+" --help\n", args)
				require.LessOrEqual(t, strings.Count(o.stderr, "\n"), 3, "%s: %s", args, o.stderr)
				require.Empty(t, o.stdout, args)
			}
		})
	})
	for name := range badValues {
		require.True(t, seen[name], "--%s is no command's any more", name)
	}
}

// The same holds for a value from a file, where it can have any byte, and it is named.
func TestPLAN5_AValueWithANULIsAUsageError(t *testing.T) {
	n := newParallelNode(t)
	seen := map[string]bool{}
	eachCommand(main.Commands(), func(c *cobra.Command) {
		for _, flag := range flagsOf(c) {
			if seen[flag.Name] || flag.Name == "config" || badOfType[flag.Value.Type()] != "" {
				continue
			}
			seen[flag.Name] = true
			n.write("/run/config.yaml", fmt.Sprintf("%s: %q\n", flag.Name, "/a\x00b.svg"))
			o := n.exits(64, slices.Concat(strings.Fields(c.CommandPath())[1:], []string{"--config", "/run/config.yaml"}, operands[c.Name()])...)
			require.Contains(t, o.stderr, "/run/config.yaml: line 1: --"+flag.Name)
		}
	})
	for variable, args := range map[string][]string{"SLIPWAY_TIMEOUT=-5s": {"check"}, "CNI_CONF_NAME=x/y": {"install-cni"}} {
		o := n.exitsEnv(64, []string{variable}, args...)
		name, _, _ := strings.Cut(variable, "=")
		require.Contains(t, o.stderr, "environment variable "+name)
	}
}
