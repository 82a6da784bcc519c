// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// object is one of Kubernetes', or a part of it.
type object = map[string]any

// deployment is examples/deploy/nodeinit.yaml, what users start from, and the
// ConfigMap that it reads.
type deployment struct {
	objects []object
	pod     object // spec of the DaemonSet's pods
	init    object // the container of nodeinit
	agent   object // the agent's own container
}

// shipped reads the manifest that we ship. Changed are the image, which is the
// tests', and the agent, which is a shell that says when it started. The network
// that nodeinit installs is the tests' too.
func shipped(t *testing.T) *deployment {
	t.Helper()
	raw, err := os.ReadFile("../../examples/deploy/nodeinit.yaml")
	require.NoError(t, err)
	d := &deployment{}
	for document := range strings.SplitSeq(strings.ReplaceAll(string(raw), "example.com/agent:latest", agentImage), "\n---\n") {
		o := object{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &o))
		d.objects = append(d.objects, o)
		if o["kind"] == "DaemonSet" {
			d.pod = at(o, "spec", "template", "spec")
		}
	}
	require.NotNil(t, d.pod)
	d.objects = append(d.objects, configMap())
	d.init = d.pod["initContainers"].([]any)[0].(object)
	d.agent = d.pod["containers"].([]any)[0].(object)
	d.flags("--cni-conf=/cni-conf/05-e2e.conflist", "--cni-conf-name=05-e2e.conflist", "--k8s-retry-spread=1s")
	d.agent["command"] = []any{"sh", "-c", standIn}
	return d
}

// standIn is an agent: its first line is the time, in seconds, at which it runs.
const standIn = "date +%s.%N; " + untilEnded

// untilEnded waits for the end of the pod and then ends at once, as sleep does not
// where it is the container's first process.
const untilEnded = "trap 'exit 0' TERM; sleep 1000000 & wait"

// at returns a part of an object.
func at(o object, path ...string) object {
	for _, name := range path {
		o = o[name].(object)
	}
	return o
}

// flags adds flags to nodeinit's command.
func (d *deployment) flags(flags ...string) {
	for _, flag := range flags {
		d.init["command"] = append(d.init["command"].([]any), flag)
	}
}

// asEntrypoint takes the init container away: what it did, nodeinit run does
// before it becomes the agent.
func (d *deployment) asEntrypoint() {
	command := d.init["command"].([]any)
	command[1] = "run"
	command = append(command, "--drop-capabilities=SYS_ADMIN,SYS_CHROOT,SYS_PTRACE", "--")
	d.init["command"] = append(command, d.agent["command"].([]any)...)
	d.capabilities("SETPCAP")
	d.init["name"] = "agent"
	d.pod["containers"] = []any{d.init}
	delete(d.pod, "initContainers")
	d.agent = d.init
}

// apply creates everything, for as long as the test runs.
func (d *deployment) apply(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		saveLogs(t)
		d.remove(t)
	})
	applyObjects(t, d.objects...)
}

// remove takes the DaemonSet and its pods away.
func (d *deployment) remove(t *testing.T) {
	t.Helper()
	kubectl(t, "delete", "daemonset", "agent", "--namespace=kube-system", "--ignore-not-found", "--cascade=foreground")
	gone(t, "app=agent")
}

func configMap() object {
	return object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "cilium-config", "namespace": "kube-system"},
		"data": object{"debug": "false", "cluster-name": "e2e"},
	}
}

func applyObjects(t *testing.T, objects ...object) {
	t.Helper()
	list, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": objects})
	require.NoError(t, err)
	require.NoError(t, node.Apply(context.WithoutCancel(t.Context()), string(list)))
}

// gone waits until no pod has the label.
func gone(t *testing.T, label string) {
	t.Helper()
	kubectl(t, "wait", "--for=delete", "pods", "--selector="+label, "--all-namespaces", "--timeout=60s")
}

// ready waits until the agent's pod is, and returns its name.
func ready(t *testing.T) string {
	t.Helper()
	kubectl(t, "rollout", "status", "daemonset/agent", "--namespace=kube-system", "--timeout=60s")
	return agentPod(t)
}

func agentPod(t *testing.T) string {
	t.Helper()
	name := kubectl(t, "get", "pods", "--namespace=kube-system", "--selector=app=agent", "--output=jsonpath={.items[*].metadata.name}")
	require.NotContains(t, name, " ", "one pod")
	return name
}

// nodeReady waits until the node's condition Ready is as wanted.
func nodeReady(t *testing.T, want string) {
	t.Helper()
	kubectl(t, "wait", "node", "--all", "--for=condition=Ready="+want, "--timeout=60s")
}

// job runs nodeinit once on the node, as the pod of a Job with what the init
// container is allowed, and what change adds; and returns its log.
func job(t *testing.T, name string, change func(*deployment), args ...any) string {
	t.Helper()
	d := shipped(t)
	d.init["command"] = append([]any{"nodeinit", args[0], "--host-proc=/hostproc"}, args[1:]...)
	if change != nil {
		change(d)
	}
	delete(d.pod, "initContainers")
	d.pod["containers"] = []any{d.init}
	d.pod["restartPolicy"] = "Never"
	applyObjects(t, object{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": object{"name": name, "namespace": "kube-system"},
		"spec": object{"backoffLimit": 0, "template": object{"metadata": object{"labels": object{"app": name}}, "spec": d.pod}},
	})
	var end string
	require.Eventually(t, func() bool {
		end = kubectl(t, "get", "job", name, "--namespace=kube-system", `--output=jsonpath={.status.conditions[?(@.status=="True")].type}`)
		return strings.Contains(end, "Complete") || strings.Contains(end, "Failed")
	}, time.Minute, 100*time.Millisecond)
	log := kubectl(t, "logs", "job/"+name, "--namespace=kube-system")
	require.Contains(t, end, "Complete", log)
	kubectl(t, "delete", "job", name, "--namespace=kube-system", "--cascade=foreground")
	gone(t, "app="+name)
	return log
}

// capabilities gives nodeinit more than the three.
func (d *deployment) capabilities(names ...any) {
	c := at(d.init, "securityContext", "capabilities")
	c["add"] = append(c["add"].([]any), names...)
}

// mount shows nodeinit a volume.
func (d *deployment) mount(path string, volume object) {
	name := fmt.Sprintf("volume-%d", len(d.pod["volumes"].([]any)))
	volume["name"] = name
	d.pod["volumes"] = append(d.pod["volumes"].([]any), volume)
	d.init["volumeMounts"] = append(d.init["volumeMounts"].([]any), object{"name": name, "mountPath": path})
}
