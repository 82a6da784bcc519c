// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// check checks settings outside the containers: the ConfigMap, and what an agent needs
// before it.
func (o options) check(r *release, n *node) error {
	config := r.configMap(n.configMap(r))
	if config["clean-cilium-state"] == "true" || config["clean-cilium-bpf-state"] == "true" {
		n.capabilities = append(n.capabilities, "NET_ADMIN", "NET_RAW")
		if len(n.skip) > 0 {
			return fmt.Errorf("daemon.runPath is %s, and nodeinit cleans /var/run/cilium: leave out cleanState and cleanBpfState", r.hostPath("cilium-run"))
		}
	}
	return errors.Join(o.checkImage(n), o.checkServer(n, config), n.checkPaths(), n.checkCgroup(config), o.checkAgent(r, n))
}

// checkImage refuses Cilium's released images, in which the kubelet would not find nodeinit.
func (o options) checkImage(n *node) error {
	if o.imageVolume != "" || !strings.HasPrefix(n.image, "quay.io/cilium/") {
		return nil
	}
	return fmt.Errorf("the image %s has no nodeinit: set image.override to one that has it, or give %simage-volume=IMAGE", n.image, argument)
}

// configMap is the name of the agent's ConfigMap, as the containers refer to it.
func (n *node) configMap(r *release) string {
	for _, v := range r.volumes {
		if from, ok := v.Others["configMap"].(map[string]any); ok && v.Name == "cilium-config-path" {
			return fmt.Sprint(from["name"])
		}
	}
	for _, source := range list(n.flag("--source")) {
		if name, ok := strings.CutPrefix(source, "config-map:"); ok {
			return name[strings.LastIndex(name, "/")+1:]
		}
	}
	return "cilium-config"
}

// flag is the value of one of nodeinit's flags.
func (n *node) flag(name string) string {
	for _, flag := range n.flags {
		if value, ok := strings.CutPrefix(flag, name+"="); ok {
			return value
		}
	}
	return ""
}

// checkServer requires an address: without kube-proxy, a ClusterIP is not reachable before
// Cilium runs.
func (o options) checkServer(n *node, config map[string]string) error {
	given := n.flag("--k8s-api-server-urls")+n.flag("--k8s-kubeconfig-path") != "" ||
		slices.ContainsFunc(n.env, func(v variable) bool { return v.Name == "KUBERNETES_SERVICE_HOST" })
	if o.clusterIP || given || config["kube-proxy-replacement"] != "true" || !slices.Contains(n.done, "config") {
		return nil
	}
	return errors.New("kubeProxyReplacement=true and no address of the API server: its ClusterIP is not reached before Cilium runs, " +
		"so set k8sServiceHost and k8sServicePort, or k8s.apiServerURLs; " + argument + "cluster-ip says that it is reached")
}

// checkPaths requires absolute paths: a relative one would start at nodeinit's directory.
func (n *node) checkPaths() error {
	for _, p := range []struct{ flag, value string }{
		{"--cgroup-root", "cgroup.hostRoot"}, {"--cni-bin-dir", "cni.binPath"}, {"--cni-conf-dir", "cni.confPath"},
	} {
		if path := n.flag(p.flag); path != "" && !strings.HasPrefix(path, "/") {
			return fmt.Errorf("%s is %s, which is no absolute path", p.value, path)
		}
	}
	return nil
}

// checkCgroup checks the cgroup root: the agent attaches its programs at the one in its
// configuration. If nodeinit resolves the configuration, it reads the root itself.
func (n *node) checkCgroup(config map[string]string) error {
	root := n.flag("--cgroup-root")
	if slices.Contains(n.done, "config") || root == "" {
		return nil
	}
	if key, ok := config["cgroup-root"]; ok && key != root {
		return fmt.Errorf("cgroup.hostRoot is %s, but the ConfigMap's cgroup-root is %s: the agent would not find the cgroup2 mount", root, key)
	}
	return nil
}

// foreign are variables that nodeinit reads and the chart's containers do not.
var foreign = strings.Fields(`CGROUP_ROOT NODE_NAME POD_NAMESPACE POD_UID HOST_PREFIX CNI_DIR CILIUM_CNI_CONF CNI_CONF_NAME
	OVERWRITE_LOOPBACK OVERWRITE_CILIUM CILIUM_CUSTOM_CNI_CONF`)

// checkAgent checks the agent's own container if nodeinit runs in it.
func (o options) checkAgent(r *release, n *node) error {
	if o.as != asRun {
		return nil
	}
	for _, v := range r.agent.Env {
		if slices.Contains(foreign, v.Name) || strings.HasPrefix(v.Name, "SLIPWAY_") {
			return fmt.Errorf("container %s: its variable %s is for the agent, but nodeinit would read it too: --as=init keeps them apart", agentContainer, v.Name)
		}
	}
	for i, name := range n.replaced {
		if got := n.resources[i]; name != "install-cni-binaries" && len(got.Limits)+len(got.Requests) > 0 {
			return fmt.Errorf("init container %s: it has resources, and with --as=run there is no init container that could have them: give them to the agent", name)
		}
	}
	if len(n.others) > 0 {
		return fmt.Errorf("init container %s: it comes after nodeinit, and with --as=run it would come before it: leave out --as=run", n.others[0])
	}
	if len(r.agent.Command) == 0 {
		return fmt.Errorf("container %s: it has no command for nodeinit to execute", agentContainer)
	}
	return nil
}
