// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
)

// object is one of Kubernetes', or a part of it.
type object = map[string]any

// deployment is one of examples/deploy, which users start from.
type deployment struct {
	objects []object
	name    string // of the DaemonSet
	pod     object // spec of its pods
	init    object // the first container, which is nodeinit or an agent that needs none
}

// deployDir has what we ship for clusters.
const deployDir = "../../../../examples/deploy"

// load reads a manifest that we ship.
func load(t *testing.T, file string) *deployment {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(deployDir, file))
	require.NoError(t, err)
	return parse(t, ownImages.Replace(string(raw)))
}

// ownImages has the tests' in place of those that the manifests name.
var ownImages = strings.NewReplacer("example.com/agent@sha256:"+strings.Repeat("0", 64), agentImage, "registry.k8s.io/pause:3.10", cluster.Pause)

func parse(t *testing.T, text string) *deployment {
	t.Helper()
	d := &deployment{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		o := object{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &o))
		d.objects = append(d.objects, o)
		if o["kind"] == "DaemonSet" {
			d.name = at(o, "metadata")["name"].(string)
			d.pod = at(o, "spec", "template", "spec")
		}
	}
	require.NotNil(t, d.pod)
	if inits, _ := d.pod["initContainers"].([]any); len(inits) > 0 {
		d.init = inits[0].(object)
	} else {
		d.init = d.pod["containers"].([]any)[0].(object)
	}
	return d
}

// ownNetwork are the flags for the tests' own.
var ownNetwork = []string{"--cni-conf=/cni-conf/05-e2e.conflist", "--cni-conf-name=05-e2e.conflist", "--k8s-retry-spread=1s"}

// agent is the agent's deployment, with the ConfigMap that nodeinit reads. Its
// network is the tests', and the agent says when it started and no more.
func agent(t *testing.T) *deployment {
	t.Helper()
	return load(t, "nodeinit.yaml").standIn()
}

func (d *deployment) standIn() *deployment {
	d.objects = append(d.objects, configMap("cilium-config", "debug", "false"))
	d.flags(ownNetwork...)
	d.pod["containers"].([]any)[0].(object)["command"] = []any{"/standin"}
	return d
}

// withComponent is a manifest that we ship with one of our components over it.
func withComponent(t *testing.T, file, component string) *deployment {
	t.Helper()
	return parse(t, ownImages.Replace(render(t, filepath.Join(deployDir, file), component)))
}

// at returns a part of an object.
func at(o object, path ...string) object {
	for _, name := range path {
		o = o[name].(object)
	}
	return o
}

// flags adds flags to nodeinit's command, before the command that it runs if it does.
func (d *deployment) flags(flags ...string) {
	command := d.init["command"].([]any)
	end := len(command)
	if i := slices.Index(command, any("--")); i >= 0 {
		end = i
	}
	for i, flag := range flags {
		command = slices.Insert(command, end+i, any(flag))
	}
	d.init["command"] = command
}

// withoutFlags removes the flags with this prefix.
func (d *deployment) withoutFlags(prefixes ...string) {
	d.init["command"] = slices.DeleteFunc(d.init["command"].([]any), func(arg any) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(arg.(string), prefix) })
	})
}

// entrypoint is the agent's deployment without init container: what that did,
// nodeinit run does before it becomes the agent.
func entrypoint(t *testing.T) *deployment {
	t.Helper()
	d := agent(t)
	command := d.init["command"].([]any)
	command[1] = "run"
	command = append(command, "--drop-capabilities=SYS_ADMIN,SYS_CHROOT,SYS_PTRACE", "--")
	d.init["command"] = append(command, "/standin")
	d.capabilities("SETPCAP")
	d.init["name"] = "agent"
	d.pod["containers"] = []any{d.init}
	delete(d.pod, "initContainers")
	return d
}

// embedding is examples/agent, which prepares its node itself.
func embedding(t *testing.T) *deployment {
	t.Helper()
	return load(t, "agent.yaml")
}

// apply creates everything, for as long as the test runs.
func (d *deployment) apply(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		saveLogs(t)
		d.remove(t)
		d.removePolicies(t)
	})
	applyObjects(t, d.objects...)
}

// removePolicies removes what would bind agents of other tests, with accounts of the same name.
func (d *deployment) removePolicies(t *testing.T) {
	t.Helper()
	for _, o := range d.objects {
		if kind := o["kind"].(string); strings.HasPrefix(kind, "ValidatingAdmissionPolicy") {
			kubectl(t, "delete", kind, at(o, "metadata")["name"].(string), "--ignore-not-found")
		}
	}
}

// remove deletes the DaemonSet and its pods.
func (d *deployment) remove(t *testing.T) {
	t.Helper()
	kubectl(t, "delete", "daemonset", d.name, "--namespace=kube-system", "--ignore-not-found", "--cascade=foreground")
	kubectl(t, "wait", "--for=delete", "pods", "--selector=app="+d.name, "--namespace=kube-system", "--timeout=60s")
}

// ready waits until the pods are, one on each node, and returns their names.
func (d *deployment) ready(t *testing.T) string {
	t.Helper()
	kubectl(t, "rollout", "status", "daemonset/"+d.name, "--namespace=kube-system", "--timeout=180s")
	return kubectl(t, "get", "pods", "--namespace=kube-system", "--selector=app="+d.name, "--output=jsonpath={.items[*].metadata.name}")
}

func configMap(name, key, value string) object {
	return object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": "kube-system"}, "data": object{key: value},
	}
}

func applyObjects(t *testing.T, objects ...object) {
	t.Helper()
	list, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": objects})
	require.NoError(t, err)
	require.NoError(t, node.Apply(context.WithoutCancel(t.Context()), string(list)))
}

func deleteObjects(t *testing.T, objects ...object) {
	t.Helper()
	list, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": objects})
	require.NoError(t, err)
	require.NoError(t, node.WriteFile("/run/e2e/delete.json", string(list)))
	kubectl(t, "delete", "--ignore-not-found", "--cascade=foreground", "-f", "/run/e2e/delete.json")
}

// nodeReady waits until the node's condition Ready is as wanted.
func nodeReady(t *testing.T, want string) {
	t.Helper()
	kubectl(t, "wait", "node", "--all", "--for=condition=Ready="+want, "--timeout=60s")
}

// cleaner is the deployment that uninstalls, with the component that removes the agent's
// leftovers.
func cleaner(t *testing.T) *deployment {
	t.Helper()
	d := withComponent(t, "uninstall.yaml", "cleanup")
	require.Equal(t, "cleanup", d.init["name"])
	return d
}

// uninstaller is the deployment that uninstalls, with the cleanup of the leftovers of the
// tests' CNI plugins in place of Cilium's.
func uninstaller(t *testing.T) *deployment {
	t.Helper()
	return uninstallerWith(t, "cilium", script(t, "ownership.yaml"))
}

func uninstallerWith(t *testing.T, agent, ownership string) *deployment {
	t.Helper()
	d := cleaner(t)
	name := "ownership-" + agent // a kubelet may know an older content of one that was changed
	d.objects = append(d.objects, configMap(name, "ownership.yaml", ownership))
	d.flags("--agent="+agent, "--ownership=/ownership/ownership.yaml")
	d.mount("/ownership", object{"configMap": object{"name": name}})
	return d
}

// uninstall runs d, an uninstaller, and returns its output.
func (d *deployment) uninstall(t *testing.T) string {
	t.Helper()
	d.apply(t)
	d.ready(t)
	said := kubectl(t, "logs", "--selector=app="+d.name, "--namespace=kube-system", "--container=uninstall", "--tail=-1")
	d.remove(t)
	return said
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
