// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"cmp"
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
	"only":                             {"bpf", ""},
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
	"timeline":                         nil,
	"timeout":                          {"-5s"},
	"wait-for-kube-proxy":              {"-1s"},
	"wait-loaded":                      {"-1s"},
	"write-cni-conf-when-ready":        {"net.d/x.conflist"},
}

// badOfType are values that no flag of the type has, goodOfType one that each has.
var (
	badOfType  = map[string]string{"bool": "perhaps", "duration": "soon", "int": "many", "float32": "fast"}
	goodOfType = map[string]string{"bool": "true", "duration": "90s", "int": "7", "float32": "7.5"}
)

// operands are what commands need beside flags.
var operands = map[string][]string{"run": {"--", "true"}, "forget": {"object"}}

// Each row of the table, with each command that it is of: its variables give it a value; a value
// that means nothing is a usage error, before anything is done, that names the flag, the
// variable or the line of the file; and the help names it with its variables.
func TestPLAN5_PLAN10_EachFlagOfTheTable(t *testing.T) {
	t.Parallel()
	seen, rows := map[string]bool{}, map[int]bool{}
	eachCommand(main.Commands(), func(c *cobra.Command) {
		if !ours(c) {
			return
		}
		command := strings.Fields(c.CommandPath())[1:]
		_, help, _ := strings.Cut(here(t, nil, append(command, "--help")...).stdout, "\nFlags, ")
		flags := strings.Join(strings.Fields(help), " ")
		var refused []refusal
		for _, f := range main.Flags(c) {
			require.Equal(t, f.Shown, strings.Contains(flags, " --"+f.Name+" "), "%s --%s", c.Name(), f.Name)
			require.Equal(t, f.Shown, strings.Contains(flags, "[$"+strings.Join(f.Variables, ", $")+"]"), "%s --%s", c.Name(), f.Name)
			good := cmp.Or(goodOfType[f.Type], append(f.Choices, "/a.svg")[0])
			for _, variable := range f.Variables {
				require.Equal(t, good, main.Value(c.Name(), f.Name, variable, " "+good+"\n"), variable)
			}
			bad, known := badValues[f.Name]
			require.True(t, known || f.Type == "bool", "say in badValues which values of --%s mean nothing", f.Name)
			if rows[f.Place] && len(refused) > 0 || len(command) == 0 {
				continue // it is one check for all commands, and this one has shown that it checks
			}
			seen[f.Name], rows[f.Place] = true, true
			if wrong := badOfType[f.Type]; wrong != "" {
				bad = append([]string{wrong}, bad...)
			} else if f.Name != "config" {
				refused = append(refused, refusal{file: fmt.Sprintf("%s: %q\n", f.Name, "/a\x00b.svg"), says: "/run/config.yaml: line 1: --" + f.Name})
			}
			for i, value := range bad {
				refused = append(refused, refusal{flag: "--" + f.Name + "=" + value, says: "--" + f.Name})
				if i == 0 && value != "" && f.Name != "config" {
					for _, variable := range f.Variables {
						refused = append(refused, refusal{variable: variable + "=" + value, says: variable})
					}
				}
			}
		}
		t.Run(c.CommandPath(), func(t *testing.T) {
			n := newParallelNode(t)
			defer n.asItWas()()
			for _, r := range refused {
				args := slices.Clone(command)
				switch {
				case r.flag != "":
					args = append(args, r.flag)
				case r.file != "":
					n.write("/run/config.yaml", r.file)
					args = append(args, "--config=/run/config.yaml")
				}
				args = append(args, operands[c.Name()]...)
				o := n.runEnv([]string{cmp.Or(r.variable, "NONE=")}, args...)
				require.Equal(t, 64, o.code, "%+v: %s%s", r, o.stdout, o.stderr)
				require.Contains(t, o.stderr, r.says, args)
				require.Contains(t, o.stderr, "nodeinit: see "+c.CommandPath()+" --help\n", args)
				require.LessOrEqual(t, strings.Count(o.stderr, "\n"), 3, "%s: %s", args, o.stderr)
				require.Empty(t, o.stdout, args)
			}
			n.shell("rm -f /run/config.yaml")
		})
	})
	require.Len(t, rows, main.Rows(), "a row that no command has")
	for name := range badValues {
		require.True(t, seen[name], "--%s is no command's any more", name)
	}
}

// refusal is a value that means nothing, from one of three places, and what its error names.
type refusal struct{ flag, variable, file, says string }
