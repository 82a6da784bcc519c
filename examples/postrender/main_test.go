// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const own = "example.com/cilium-nodeinit:"

// charts are the agents' DaemonSets from three charts, as helm renders them with
// image.override alone.
func charts(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/cilium-*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 3)
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all[filepath.Base(file)] = strings.ReplaceAll(string(text), "quay.io/cilium/cilium:v", own)
	}
	return all
}

// rendered is the agent's pod after a run.
type rendered struct {
	text        string
	init        []container
	agent       container
	volumes     []volume
	annotations map[string]string
}

func render(t *testing.T, chart string, args ...string) (*rendered, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(args, strings.NewReader(chart), &out, io.Discard)
	if err != nil {
		require.Empty(t, out.String(), "nothing is written")
		return nil, err
	}
	r, err := read(bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
	return &rendered{text: out.String(), init: r.init, agent: r.agent, volumes: r.volumes, annotations: r.pod.GetAnnotations()}, nil
}

func names(volumes []volume) (list []string) {
	for _, v := range volumes {
		list = append(list, v.Name)
	}
	return list
}

// With the default values of the three charts there is one container, with all the settings of
// the charts' own.
func TestOneInitContainerInPlaceOfSix(t *testing.T) {
	for name, chart := range charts(t) {
		t.Run(name, func(t *testing.T) {
			r, err := render(t, chart)
			require.NoError(t, err)
			require.Len(t, r.init, 1)
			c := r.init[0]
			require.Equal(t, []string{"nodeinit", "apply", "--agent=cilium", "--host-proc=/hostproc", "--source=config-map:cilium-config,cilium-node-config",
				"--cgroup-root-key=cgroup-root", "--cgroup-root=/run/cilium/cgroupv2", "--plugins=/opt/cni/bin,/cni"}, c.Command)
			require.Equal(t, own+strings.TrimSuffix(strings.TrimPrefix(name, "cilium-"), ".yaml"), c.Image)
			require.Equal(t, []string{"K8S_NODE_NAME", "CILIUM_K8S_NAMESPACE", "CILIUM_ALL_STATE", "CILIUM_BPF_STATE", "WRITE_CNI_CONF_WHEN_READY", "POD_UID"}, variableNames(c.Env))
			require.Equal(t, map[string]string{"cpu": "100m", "memory": "10Mi"}, c.Resources.Requests)
			require.Empty(t, c.Resources.Limits, "five of the six have none")
			require.Equal(t, []mount{{Name: "tmp", MountPath: "/tmp"}, {Name: "hostproc", MountPath: "/hostproc", ReadOnly: true}}, c.VolumeMounts)
			require.False(t, c.SecurityContext.Privileged)
			require.Subset(t, []string{"SYS_ADMIN", "SYS_CHROOT", "SYS_PTRACE", "NET_ADMIN"}, c.SecurityContext.Capabilities.Add)
			require.Equal(t, map[string]string{"level": "s0", "type": "spc_t"}, c.SecurityContext.SELinux)
			require.Contains(t, names(r.volumes), "hostproc")
			require.NotContains(t, names(r.volumes), "cni-path")

			_, err = render(t, r.text)
			require.ErrorContains(t, err, "the init container nodeinit is not known")
		})
	}
}

func variableNames(env []variable) (list []string) {
	for _, v := range env {
		list = append(list, v.Name)
	}
	return list
}

func TestTheAgentIsWhatNodeinitBecomes(t *testing.T) {
	for name, chart := range charts(t) {
		t.Run(name, func(t *testing.T) {
			before, err := read(strings.NewReader(chart))
			require.NoError(t, err)
			r, err := render(t, chart, "--as=run", "--image-volume=example.com/nodeinit:1")
			require.NoError(t, err)
			require.Empty(t, r.init)
			require.Equal(t, []string{"/slipway/usr/bin/nodeinit", "run"}, r.agent.Command[:2])
			n := len(r.agent.Command)
			require.Equal(t, []string{"--drop-capabilities=SYS_CHROOT,SYS_PTRACE,SETPCAP", "--", "cilium-agent"}, r.agent.Command[n-3:])
			require.Equal(t, before.agent.Args, r.agent.Args)
			require.Equal(t, before.agent.Others, r.agent.Others, "probes, ports and hooks stay")
			require.Subset(t, r.agent.SecurityContext.Capabilities.Add, append(before.agent.SecurityContext.Capabilities.Add, "SYS_CHROOT", "SYS_PTRACE", "SETPCAP"))
			require.Contains(t, r.agent.VolumeMounts, mount{Name: "cilium-run", MountPath: "/var/run/cilium", Propagation: "HostToContainer"})
			require.Contains(t, r.agent.VolumeMounts, mount{Name: "nodeinit", MountPath: "/slipway", ReadOnly: true})
			require.Contains(t, names(r.volumes), "nodeinit")
		})
	}
}

func TestAnInitContainerFromAnImageVolume(t *testing.T) {
	r, err := render(t, charts(t)["cilium-1.20.2.yaml"], "--image-volume=example.com/nodeinit:1", "--read-only-etc")
	require.NoError(t, err)
	require.Equal(t, []string{"/slipway/usr/bin/nodeinit", "apply"}, r.init[0].Command[:2])
	require.Contains(t, r.init[0].Command, "--sysctl-conf-dir=")
	require.Contains(t, r.init[0].VolumeMounts, mount{Name: "nodeinit", MountPath: "/slipway", ReadOnly: true})
	require.Contains(t, names(r.volumes), "nodeinit")
}

// Cilium's released images have no nodeinit: the pods would not start.
func TestAReleasedImageIsRefusedOnAnyRegistry(t *testing.T) {
	const none = " has no nodeinit: set image.override to one that has it, or give --post-renderer-args=--image-volume=IMAGE"
	const flag = "--post-renderer-args=--image-has-nodeinit says that this one has it"
	const digest = "@sha256:5649db451c88d928ea585514746d50d91e6210801b300c897283ea319d68de15" // of 1.18.3
	another := "@sha256:" + strings.Repeat("5", 64)
	for _, c := range []struct {
		image               string
		refused, withTheTag bool // without flags, and with --image-has-nodeinit
	}{
		{"quay.io/cilium/cilium:v1.18.3" + digest, true, true},
		{"rancher/mirrored-cilium-cilium:v1.18.3" + digest, true, true},
		{"quay.tencentcloudcr.com/cilium/cilium:v1.18.3" + digest, true, true},
		{"localhost:5000/mine" + digest, true, true},
		{"localhost:5000/mine:1" + digest, true, true},
		{"quay.io/cilium/cilium:v1.18.3", true, false},
		{"rancher/mirrored-cilium-cilium:v1.18.3", true, false},
		{"localhost:5000/cilium:v1.20.0-rc.1", true, false},
		{"example.com/cilium:v1.18.999" + another, true, false}, // a release that we do not know, perhaps
		{"example.com/cilium:v1.18.3" + another, false, false},  // no release: that has another digest
		{"example.com/cilium" + another, false, false},
		{"quay.io/cilium/cilium:mine", false, false},
		{"example.com/cilium:v1.18.3-nodeinit", false, false},
		{"example.com:1/v1.18.3/cilium", false, false},
	} {
		for _, as := range []string{asInit, asRun} {
			t.Run(as+" "+c.image, func(t *testing.T) {
				chart := strings.ReplaceAll(charts(t)["cilium-1.18.3.yaml"], own+"1.18.3", c.image)
				_, err := render(t, chart, "--as="+as)
				_, flagged := render(t, chart, "--as="+as, "--image-has-nodeinit")
				_, mounted := render(t, chart, "--as="+as, "--image-volume=example.com/nodeinit:1")
				require.NoError(t, mounted)
				if c.refused {
					require.ErrorContains(t, err, none)
					require.Equal(t, c.withTheTag, !strings.Contains(err.Error(), flag), "the flag is offered where it helps")
				} else {
					require.NoError(t, err)
				}
				if c.withTheTag {
					require.ErrorContains(t, flagged, " by its digest, and"+none)
				} else {
					require.NoError(t, flagged)
				}
			})
		}
	}
	for name, chart := range charts(t) {
		_, err := render(t, strings.ReplaceAll(chart, own, "quay.io/cilium/cilium:v"))
		require.ErrorContains(t, err, none, name)
	}
}

// Each release has one digest, and the tag's form is known.
func TestReleasesAreTold(t *testing.T) {
	seen := map[string]bool{}
	for line := range strings.Lines(released) {
		require.Regexp(t, `^v1\.(18|19|20)\.\d+ sha256:[0-9a-f]{64}\n$`, line)
		for word := range strings.FieldsSeq(line) {
			require.False(t, seen[word], word)
			seen[word] = true
		}
	}
	require.True(t, seen["v1.18.3"] && seen["v1.19.7"] && seen["v1.20.2"])
}

// The chart gives extraEnv to the agent, and to two of its init containers.
func TestVariablesForTheAgentOnly(t *testing.T) {
	const first = "- name: K8S_NODE_NAME"
	chart := charts(t)["cilium-1.20.2.yaml"]
	chart = strings.ReplaceAll(chart, first, "- name: CILIUM_MTU\n          value: \"1400\"\n        "+first)
	_, err := render(t, chart)
	require.ErrorContains(t, err, "its variable CILIUM_MTU means nothing to nodeinit: --post-renderer-args=--agent-env=CILIUM_MTU leaves it to the agent")
	r, err := render(t, chart, "--agent-env=OTHER,CILIUM_MTU")
	require.NoError(t, err)
	require.NotContains(t, variableNames(r.init[0].Env), "CILIUM_MTU")
	require.Contains(t, variableNames(r.agent.Env), "CILIUM_MTU")
	r, err = render(t, chart, "--agent-env=CILIUM_MTU", "--as=run")
	require.NoError(t, err)
	require.Contains(t, variableNames(r.agent.Env), "CILIUM_MTU")
}

// edit returns a chart with texts replaced; each must occur.
func edit(t *testing.T, chart string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		require.Contains(t, chart, pairs[i])
		chart = strings.Replace(chart, pairs[i], pairs[i+1], 1)
	}
	return chart
}

const built = "        - cilium-dbg\n        - build-config\n"

func TestWhatTheChartSaysReachesNodeinit(t *testing.T) {
	chart := charts(t)["cilium-1.18.3.yaml"]
	for _, c := range []struct {
		name  string
		edits []string
		flags []string
	}{
		{"sources", []string{built, built + "        - --source=config-map:mine,node\n"}, []string{"--source=config-map:mine,node"}},
		{"blanks", []string{built, built + "        - \"--source=config-map:mine node\"\n"}, []string{"--source=config-map:mine,node"}},
		{"policy", []string{built, built + "        - --allow-config-keys=debug\n        - --deny-config-keys=mtu\n"}, []string{"--allow-config-keys=debug", "--deny-config-keys=mtu"}},
		{"servers", []string{built, built + "        - \"--k8s-api-server-urls=https://a https://b\"\n"}, []string{"--k8s-api-server-urls=https://a,https://b"}},
		{"several times", []string{built, built + "        - --source=node\n        - --source=config-map:mine\n        - --deny-config-keys=mtu\n        - --deny-config-keys=debug\n"}, []string{"--source=node", "--source=config-map:mine", "--deny-config-keys=mtu", "--deny-config-keys=debug"}},
		{"arguments", []string{built, built + "        args:\n        - --source=node\n"}, []string{"--source=node"}},
		{"arguments and one word", []string{built, "        - cilium-dbg\n        args:\n        - build-config\n        - --source=node\n"}, []string{"--source=node"}},
		{"arguments alone", []string{"        command:\n" + built, "        args:\n" + built + "        - --source=node\n"}, []string{"--source=node"}},
		{"kubeconfig", []string{built, built + "        - --k8s-kubeconfig-path=/k\n"}, []string{"--k8s-kubeconfig-path=/k"}},
		{"an address of the API server", []string{built + "        env:\n", built + "        env:\n        - name: KUBERNETES_SERVICE_HOST\n          value: 169.254.128.1\n        - name: KUBERNETES_SERVICE_PORT\n          value: \"60002\"\n",
			"---\n# Source", configMap("kube-proxy-replacement", "true") + "---\n# Source"}, nil},
		{"hostRoot", []string{"value: /run/cilium/cgroupv2", "value: /sys/fs/cgroup"}, []string{"--cgroup-root=/sys/fs/cgroup"}},
		{"directories", []string{"path:  /opt/cni/bin", "path: /bin2", "path: /etc/cni/net.d", "path: /conf2"}, []string{"--cni-bin-dir=/bin2", "--cni-conf-dir=/conf2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := render(t, edit(t, chart, c.edits...))
			require.NoError(t, err)
			require.Subset(t, r.init[0].Command, c.flags)
		})
	}
}

// without returns a chart without the named containers.
func without(t *testing.T, chart string, containers ...string) string {
	t.Helper()
	for _, name := range containers {
		start := strings.Index(chart, "      - name: "+name+"\n")
		require.Positive(t, start, name)
		end := start + 1 + strings.Index(chart[start+1:], "\n      - name: ")
		if last := start + strings.Index(chart[start:], "      restartPolicy:") - 1; end <= start || last < end {
			end = last
		}
		chart = chart[:start] + chart[end+1:]
	}
	return chart
}

func TestStepsThatTheChartLeavesOutAreLeftOut(t *testing.T) {
	for name, chart := range charts(t) {
		t.Run(name, func(t *testing.T) {
			chart := without(t, chart, "mount-cgroup", "apply-sysctl-overwrites", "mount-bpf-fs", "install-cni-binaries")
			chart = edit(t, chart, "      - name: hostproc\n        hostPath:\n          path: /proc\n          type: Directory\n", "")
			r, err := render(t, chart)
			require.NoError(t, err)
			require.Contains(t, r.init[0].Command, "--skip=cgroup,sysctl,bpffs,cni")
			require.NotContains(t, strings.Join(r.init[0].Command, " "), "--plugins")
			require.Contains(t, names(r.volumes), "hostproc", "the chart leaves it out too")

			r, err = render(t, without(t, chart, "config")+"\n"+configMap("", ""))
			require.NoError(t, err)
			require.NotContains(t, strings.Join(r.init[0].Command, " "), "--source", "there is nothing to resolve")
			require.Contains(t, variableNames(r.init[0].Env), "CILIUM_ALL_STATE")
		})
	}
}

func configMap(key, value string) string {
	data := "{}"
	if key != "" {
		data = "{" + key + ": \"" + value + "\"}"
	}
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cilium-config}\ndata: " + data + "\n"
}

func TestPrivilegedStaysPrivileged(t *testing.T) {
	chart := without(t, charts(t)["cilium-1.20.2.yaml"], "mount-bpf-fs") // the chart leaves it out then
	chart = edit(t, chart, "          capabilities:\n            add:\n              - NET_ADMIN\n            drop:\n              - ALL\n      # Required", "          privileged: true\n      # Required")
	r, err := render(t, chart)
	require.NoError(t, err)
	s := r.init[0].SecurityContext
	require.True(t, s.Privileged)
	require.Nil(t, s.Escalation, "the API server refuses it together with privileged")
	require.Empty(t, s.Capabilities)
	require.Contains(t, r.init[0].Command, "--skip=bpffs", "the agent mounts it")
}

func TestCleanStateGetsItsCapabilities(t *testing.T) {
	chart := charts(t)["cilium-1.18.3.yaml"]
	r, err := render(t, chart+configMap("clean-cilium-state", "false"))
	require.NoError(t, err)
	require.NotContains(t, r.init[0].SecurityContext.Capabilities.Add, "NET_RAW")
	r, err = render(t, chart+configMap("clean-cilium-state", "true"))
	require.NoError(t, err)
	require.Subset(t, r.init[0].SecurityContext.Capabilities.Add, []string{"NET_ADMIN", "NET_RAW"})

	elsewhere := strings.ReplaceAll(chart, "path: /var/run/cilium\n", "path: /other\n")
	r, err = render(t, elsewhere)
	require.NoError(t, err)
	require.Contains(t, r.init[0].Command, "--skip=host-paths", "the kubelet makes the paths that the chart names")
	_, err = render(t, elsewhere+configMap("clean-cilium-state", "true"))
	require.ErrorContains(t, err, "daemon.runPath is /other, and nodeinit cleans /var/run/cilium")
}

func TestAppArmorOfContainersThatAreGone(t *testing.T) {
	chart := edit(t, charts(t)["cilium-1.18.3.yaml"], "        kubectl.kubernetes.io/default-container", "        "+appArmor+"cilium-agent: unconfined\n        "+
		appArmor+"mount-cgroup: unconfined\n        kubectl.kubernetes.io/default-container")
	r, err := render(t, chart)
	require.NoError(t, err)
	require.NotContains(t, r.annotations, appArmor+"mount-cgroup")
	require.Contains(t, r.annotations, appArmor+"cilium-agent")
	require.Equal(t, map[string]string{"type": "Unconfined"}, r.init[0].SecurityContext.AppArmor)
}

const cleaning = "      - name: clean-cilium-state\n"

func TestWaitsAndOwnContainersStay(t *testing.T) {
	chart := edit(t, charts(t)["cilium-1.19.7.yaml"], cleaning, "      - name: wait-for-node-init\n        image: a\n"+cleaning,
		"      - name: install-cni-binaries\n", "      - name: mine\n        image: b\n      - name: install-cni-binaries\n")
	_, err := render(t, chart)
	require.ErrorContains(t, err, "the init container mine is not known: --post-renderer-args=--keep=mine leaves it as it is, after nodeinit")
	r, err := render(t, chart, "--keep=mine")
	require.NoError(t, err)
	require.Len(t, r.init, 3)
	require.Equal(t, "wait-for-node-init nodeinit mine", r.init[0].Name+" "+r.init[1].Name+" "+r.init[2].Name)
	_, err = render(t, chart, "--keep=mine", "--as=run")
	require.ErrorContains(t, err, "init container mine: it comes after nodeinit, and with --as=run it would come before it")
	r, err = render(t, without(t, chart, "mine"), "--as=run")
	require.NoError(t, err)
	require.Len(t, r.init, 1, "the awaited container comes before the agent's")
}

// waiting is how the charts' container for waitForKubeProxy=true begins.
const waiting = `      - name: wait-for-kube-proxy
        image: "example.com/cilium-nodeinit:1.20.2"
        imagePullPolicy: IfNotPresent
        securityContext:
          privileged: true
        command:
          - bash
          - -c
          - |
            while true
            do
              if iptables-nft-save -t mangle | grep -E '^:(KUBE-IPTABLES-HINT|KUBE-PROXY-CANARY)'; then
                exit 0
              fi
              sleep 1;
            done
        terminationMessagePolicy: FallbackToLogsOnError
`

func TestNodeinitWaitsForKubeProxy(t *testing.T) {
	chart := edit(t, charts(t)["cilium-1.20.2.yaml"], cleaning, waiting+cleaning)
	r, err := render(t, chart)
	require.NoError(t, err)
	require.Len(t, r.init, 1)
	require.Contains(t, r.init[0].Command, "--wait-for-kube-proxy=4m")
	require.Contains(t, r.init[0].SecurityContext.Capabilities.Add, "NET_ADMIN")
	require.False(t, r.init[0].SecurityContext.Privileged)
	r, err = render(t, chart, "--as=run")
	require.NoError(t, err)
	require.Empty(t, r.init)
	require.Contains(t, r.agent.Command, "--wait-for-kube-proxy=4m")

	_, err = render(t, edit(t, chart, "              if iptables-nft-save", "              if other"))
	require.ErrorContains(t, err, "init container wait-for-kube-proxy: nodeinit does not replace its command: sh -c while true do if other")
}

func TestWhatCannotBeCarriedOverIsRefused(t *testing.T) {
	chart := charts(t)["cilium-1.20.2.yaml"]
	for _, c := range []struct {
		name, want string
		edits      []string
	}{
		{"flag without value", "its flag --source has no value", []string{built, built + "        - --source\n        - node\n"}},
		{"one word", "init container config: nodeinit does not replace its command: cilium-dbg build-config --source=node", []string{built, "        - cilium-dbg build-config --source=node\n"}},
		{"half a command", "init container config: nodeinit does not replace its command: cilium-dbg", []string{built, "        - cilium-dbg\n"}},
		{"no command", "init container config: nodeinit does not replace its command: x", []string{"        command:\n" + built, "        args:\n        - x\n"}},
		{"kubeProxyReplacement of the source named second", "no address of the API server", []string{built, built + "        - --source=node\n        - --source=config-map:mine\n",
			"---\n# Source", strings.Replace(configMap("kube-proxy-replacement", "true"), "cilium-config", "mine", 1) + "---\n# Source"}},
		{"script", "init container mount-cgroup: nodeinit does not replace its command", []string{"rm /hostbin/cilium-mount\n", "rm /hostbin/cilium-mount; sleep 1\n"}},
		{"variable twice", "K8S_NODE_NAME is", []string{"- name: CILIUM_ALL_STATE", "- name: K8S_NODE_NAME\n          value: x\n        - name: CILIUM_ALL_STATE"}},
		{"image", "init container clean-cilium-state: its image is mine, but another's is example.com", []string{cleaning + "        image: \"" + own + "1.20.2\"\n", cleaning + "        image: mine\n"}},
		{"capability", "init container clean-cilium-state: it gets CAP_SYS_BOOT, which nodeinit does not need", []string{"              - SYS_MODULE\n              - SYS_ADMIN\n              - SYS_RESOURCE\n            drop:\n              - ALL\n        volumeMounts:\n        - name: bpf-maps", "              - SYS_BOOT\n            drop:\n              - ALL\n        volumeMounts:\n        - name: bpf-maps"}},
		{"no agent", "there is no DaemonSet with a container cilium-agent", []string{"      - name: cilium-agent\n", "      - name: another\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := render(t, edit(t, chart, c.edits...))
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := render(t, edit(t, chart, "---\n# Source", configMap("kube-proxy-replacement", "true")+"---\n# Source"), "--cluster-ip")
	require.NoError(t, err)
	_, err = render(t, without(t, chart, "config")+configMap("cgroup-root", "/other"))
	require.ErrorContains(t, err, "cgroup.hostRoot is /run/cilium/cgroupv2, but the ConfigMap's cgroup-root is /other")
	const other = "---\nkind: DaemonSet\nmetadata: {name: other}\nspec: {template: {spec: {initContainers: [{name: node, %s}]}}}\n"
	for _, c := range []string{
		"command: [/usr/bin/nodeinit], args: [install-cni]", "command: [nodeinit, apply, --agents=other]", "command: [nodeinit, run, --, agent, --agent=other]",
		"command: [sh, -c, 'mkdir /x && exec /bin/nodeinit apply']", "args: [apply], image: example.com/slipway/nodeinit:v1",
		"command: [nodeinit, apply], env: [{name: SLIPWAY_AGENT, value: ''}]",
	} {
		_, err = render(t, chart+fmt.Sprintf(other, c))
		require.ErrorContains(t, err, "DaemonSet other, container node: its nodeinit has no --agent, so what it applies would be recorded as Cilium's", c)
	}
	for _, c := range []string{
		"command: [nodeinit, apply, --agent=other]", "command: [nodeinit, apply, --agent, other]", "command: [sh, -c, 'nodeinit apply --agent other']",
		"command: [nodeinit, check]", "args: [apply], image: example.com/other", "command: [nodeinit, apply], envFrom: [{configMapRef: {name: x}}]",
		"command: [nodeinit, apply], env: [{name: SLIPWAY_AGENT, value: other}]", "command: [nodeinit, apply], env: [{name: SLIPWAY_AGENT, valueFrom: {fieldRef: {fieldPath: a}}}]",
	} {
		_, err = render(t, chart+fmt.Sprintf(other, c))
		require.NoError(t, err, c)
	}
	for arg, says := range map[string]string{"--as=both": `--as "both": want init or run`, "chart.yaml": `unexpected argument "chart.yaml"`, "--clusterip": "unknown flag: --clusterip: did you mean --cluster-ip?", "--xyz": "unknown flag: --xyz"} {
		_, err = render(t, chart, arg)
		require.EqualError(t, err, says)
		require.ErrorAs(t, err, new(usageError))
	}
	_, err = render(t, "kind: DaemonSet\na: [cilium-agent")
	require.ErrorContains(t, err, "read the chart")
}

// Whoever mends one cause and tries again should not find the next.
func TestAllCausesAreReportedInOneGo(t *testing.T) {
	chart := edit(t, charts(t)["cilium-1.20.2.yaml"], built, built+"        - --frobnicate=1\n        - --source\n",
		cleaning, "      - name: mine\n        image: b\n"+cleaning+"        restartPolicy: Always\n        resources: {limits: {cpu: x}}\n",
		"- name: CILIUM_ALL_STATE", "- name: FROB\n          value: x\n        - name: FROB2\n          value: x\n        - name: CILIUM_ALL_STATE",
		`"/install-plugin.sh"`, `"/other.sh"`, "value: /run/cilium/cgroupv2", "value: run/cgroupv2",
		"path:  /opt/cni/bin", "path: opt/bin", "path: /etc/cni/net.d", "path: net.d",
		"        kubectl.kubernetes.io/default-container", "        "+appArmor+"mount-cgroup: localhost/mine\n        kubectl.kubernetes.io/default-container",
		"        - name: CILIUM_CLUSTERMESH_CONFIG\n", "        - name: CNI_DIR\n          value: x\n        - name: SLIPWAY_LOG\n          value: x\n        - name: POD_UID\n          value: x\n        - name: CILIUM_CLUSTERMESH_CONFIG\n")
	chart = strings.ReplaceAll(chart, own, "example.com/mirror:v") + configMap("kube-proxy-replacement", "true")
	for as, only := range map[string][]string{asInit: {"resources: cpu: x"}, asRun: {
		"init container clean-cilium-state: it has resources, and with --as=run there is no init container that could have them", "container cilium-agent: its variable CNI_DIR is for the agent", "its variable SLIPWAY_LOG is for", "container cilium-agent: POD_UID is",
	}} {
		_, err := render(t, chart, "--as="+as)
		for _, cause := range append([]string{
			"init container config: its flag --frobnicate=1 is not known", "init container config: its flag --source has no value",
			"the init container mine is not known", "init container clean-cilium-state: it has fields that are not known: map[restartPolicy:Always]",
			"init container clean-cilium-state: its variable FROB means nothing to nodeinit: --post-renderer-args=--agent-env=FROB leaves it to the agent",
			"init container clean-cilium-state: its variable FROB2 means", "init container install-cni-binaries: nodeinit does not replace its command: /other.sh",
			"the image example.com/mirror:v1.20.2 has the tag", "kubeProxyReplacement=true and no address of the API server: its ClusterIP is not reached before Cilium runs, so set k8sServiceHost and k8sServicePort, or k8s.apiServerURLs; --post-renderer-args=--cluster-ip says",
			"cgroup.hostRoot is run/cgroupv2, which is no absolute path", "cni.binPath is opt/bin, which is no absolute path", "cni.confPath is net.d, which is no absolute path",
			"mount-cgroup is localhost/mine: with that profile nodeinit cannot mount",
		}, only...) {
			require.ErrorContains(t, err, cause, as)
		}
	}
}

func TestRepeatedFlagsAccumulate(t *testing.T) {
	const first = "- name: K8S_NODE_NAME"
	chart := strings.ReplaceAll(charts(t)["cilium-1.20.2.yaml"], first, "- name: A\n          value: x\n        - name: B\n          value: x\n        "+first)
	chart = edit(t, chart, cleaning, "      - name: one\n        image: b\n      - name: two\n        image: b\n      - name: three\n        image: b\n"+cleaning)
	r, err := render(t, chart, "--keep=one", "--keep=two,three", "--agent-env=A", "--agent-env=B")
	require.NoError(t, err)
	require.Len(t, r.init, 4)
}

// With helm 4, a plugin's output that is no object is shown, and a failing program's output is
// lost.
func TestAPluginsReasonIsNoObject(t *testing.T) {
	var out bytes.Buffer
	refuseAsPlugin(&out, errors.Join(errors.New("one: two"), errors.New("- three")))
	var text any
	require.NoError(t, yaml.Unmarshal(out.Bytes(), &text))
	require.Equal(t, "postrender: one: two\n- three\n", text)
}

func TestTheLargestResourcesCount(t *testing.T) {
	n := &node{resources: []resources{
		{Requests: map[string]string{"cpu": "100m"}, Limits: map[string]string{"cpu": "1", "memory": "1Gi"}},
		{Requests: map[string]string{"cpu": "1", "memory": "1Mi"}, Limits: map[string]string{"memory": "900Mi"}},
	}}
	require.Equal(t, resources{Requests: map[string]string{"cpu": "1", "memory": "1Mi"}, Limits: map[string]string{"memory": "1Gi"}}, n.greatest())
	require.Empty(t, n.causes)
}
