// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build charts

package config_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The chart's code that nodeinit replaces must not have changed since nodeinit was written:
// these tests read each release's sources and fail on any difference.
var ciliumReleases = []string{"v1.18.3", "v1.19.7", "v1.20.2"}

// source returns a file of a Cilium release, or nothing if the release has none.
func source(t *testing.T, version, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(download(t, "github.com/cilium/cilium@"+version), path))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return string(text)
}

// The programs and scripts of the steps cgroup, sysctl and bpffs, and of the wait for
// kube-proxy, are the same in all releases. The containers around the scripts are not: since
// 1.19, bash runs two of them instead of sh.
func TestChartsStepsAreThoseThatNodeinitIsInPlaceOf(t *testing.T) {
	const template = "install/kubernetes/cilium/templates/cilium-agent/daemonset.yaml"
	scripts := map[string]string{
		"mount-cgroup": `cp /usr/bin/cilium-mount /hostbin/cilium-mount;
nsenter --cgroup=/hostproc/1/ns/cgroup --mount=/hostproc/1/ns/mnt "${BIN_PATH}/cilium-mount" $CGROUP_ROOT;
rm /hostbin/cilium-mount`,
		"apply-sysctl-overwrites": `cp /usr/bin/cilium-sysctlfix /hostbin/cilium-sysctlfix;
nsenter --mount=/hostproc/1/ns/mnt "${BIN_PATH}/cilium-sysctlfix";
rm /hostbin/cilium-sysctlfix`,
		"mount-bpf-fs": `mount | grep "/sys/fs/bpf type bpf" || mount -t bpf bpf /sys/fs/bpf'`,
	}
	for _, version := range ciliumReleases {
		t.Run(version, func(t *testing.T) {
			chart := source(t, version, template)
			for container, want := range scripts {
				require.Contains(t, unindented(initContainer(t, chart, container)), want, container)
			}
			const waits = "wait-for-kube-proxy"
			require.Equal(t, initContainer(t, source(t, ciliumReleases[0], template), waits), initContainer(t, chart, waits))
			for _, program := range []string{"tools/mount/main.go", "tools/sysctlfix/main.go"} {
				want := source(t, ciliumReleases[0], program)
				require.NotEmpty(t, want)
				require.Equal(t, want, source(t, version, program), program)
			}
		})
	}
}

// initContainer returns the text of an init container in a chart's template.
func initContainer(t *testing.T, chart, name string) string {
	t.Helper()
	_, text, found := strings.Cut(chart, "\n      - name: "+name+"\n")
	require.True(t, found, "the chart has no init container %s", name)
	end := regexp.MustCompile(`(?m)^      (- name: |# |containers:|\{\{-? ?end)`).FindStringIndex(text)
	require.NotNil(t, end)
	return text[:end[0]]
}

// unindented returns the lines of a text without their YAML indentation.
func unindented(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "- '")))
	}
	return strings.Join(lines, "\n")
}

// Since 1.20, build-config reads CiliumNodeConfigs in version v2 only; before, also in
// v2alpha1. All releases define both, and store v2: so ours, which reads v2 and falls back to
// the older version, reads what each of them reads. TestCFG3_OlderVersion shows the fallback,
// and TestCFG_Vectors shows it on an API server.
func TestChartsNodeConfigsAreReadInTheVersionsThatTheyHave(t *testing.T) {
	for version, older := range map[string]bool{"v1.18.3": true, "v1.19.7": true, "v1.20.2": false} {
		t.Run(version, func(t *testing.T) {
			resolver := source(t, version, "pkg/option/resolver/resolver.go")
			require.Contains(t, resolver, "CiliumV2().CiliumNodeConfigs(")
			require.Equal(t, older, strings.Contains(resolver, "CiliumV2alpha1().CiliumNodeConfigs("))

			definition := source(t, version, "pkg/k8s/apis/cilium.io/client/crds/v2/ciliumnodeconfigs.yaml")
			served := regexp.MustCompile(`(?m)^    (name|served|storage): (\S+)$|^  - (name): (\S+)$`).FindAllString(definition, -1)
			var said []string
			for _, line := range served {
				said = append(said, strings.TrimLeft(line, " -"))
			}
			require.Equal(t, []string{"name: v2", "served: true", "storage: true", "name: v2alpha1", "served: true", "storage: false"}, said)
		})
	}
}

// We have every flag of build-config, hidden ones included.
func TestCFG14_ChartsBuildConfigHasNoFlagThatOursRefuses(t *testing.T) {
	ours := buildNodeinit(t)
	counts := map[string]int{}
	for _, version := range ciliumReleases {
		t.Run(version, func(t *testing.T) {
			flags := buildConfigFlags(t, version)
			counts[version] = len(flags)
			t.Log(strings.Join(flags, " "))
			require.Subset(t, flags, []string{"dest", "source", "k8s-client-qps", "debug"}, "the flags are found")
			for _, flag := range flags {
				require.NoError(t, exec.Command(ours, "build-config", "--"+flag+"="+example(flag), "--help").Run(), flag)
			}
		})
	}
	require.Error(t, exec.Command(ours, "build-config", "--no-such-flag=1", "--help").Run(), "an unknown flag is an error")
	require.Equal(t, map[string]int{"v1.18.3": 20, "v1.19.7": 21, "v1.20.2": 20}, counts)
}

// buildConfigFlags lists the flags registered by the sources of build-config's parts and of the
// root command.
func buildConfigFlags(t *testing.T, version string) (flags []string) {
	t.Helper()
	constants := source(t, version, "pkg/option/config.go")
	for _, path := range []string{"cilium-dbg/cmd/build-config.go", "cilium-dbg/cmd/root.go", "pkg/k8s/client/config.go", "pkg/k8s/hostfirewallbypass/cell.go"} {
		for _, m := range regexp.MustCompile(`\bflags\.(?:Bool|String|StringSlice|Float32|Int|Duration|Var|StringVar|BoolP|StringP)\(([^\n]*)`).FindAllStringSubmatch(source(t, version, path), -1) {
			flags = append(flags, flagName(t, m[1], constants, source(t, version, path)))
		}
	}
	slices.Sort(flags)
	return flags
}

// flagName finds the name in the arguments of a call that registers a flag: a text, or a
// constant.
func flagName(t *testing.T, arguments, constants, file string) string {
	t.Helper()
	if m := regexp.MustCompile(`^(?:&\w+, )?"([a-z0-9-]+)"`).FindStringSubmatch(arguments); m != nil {
		return m[1]
	}
	m := regexp.MustCompile(`^(?:option\.New\w*MapOptions\([^)]*\), )?(?:option\.)?(\w+)`).FindStringSubmatch(arguments)
	require.NotNil(t, m, arguments)
	name := regexp.MustCompile(`(?m)\b` + m[1] + `\s+:?= "([a-z0-9-]+)"`).FindStringSubmatch(constants + "\n" + file)
	require.NotNil(t, name, arguments)
	return name[1]
}

// example is a value that the flag accepts.
func example(flag string) string {
	switch {
	case strings.HasPrefix(flag, "enable-"), flag == "debug":
		return "true"
	case strings.HasSuffix(flag, "-qps"), strings.HasSuffix(flag, "-burst"):
		return "7"
	case strings.Contains(flag, "timeout"), strings.Contains(flag, "keep-alive"):
		return "5s"
	}
	return "x"
}
