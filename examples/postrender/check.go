// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	_ "embed" // of released.txt
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// check checks settings outside the containers: the ConfigMap, and what an agent needs
// before it.
func (o options) check(r *release, n *node) error {
	n.addPaths(r)
	config, err := r.configMap(n.configMap(r))
	if config["clean-cilium-state"] == "true" || config["clean-cilium-bpf-state"] == "true" {
		n.capabilities = append(n.capabilities, "NET_ADMIN", "NET_RAW")
		if len(n.skip) > 0 {
			n.refuse("daemon.runPath is %s, and nodeinit cleans /var/run/cilium: leave out cleanState and cleanBpfState", r.hostPath("cilium-run"))
		}
	}
	if o.imageVolume == "" {
		o.checkImage(n)
	}
	o.checkServer(n, config)
	n.checkPaths()
	n.checkCgroup(config)
	r.checkOthers(n)
	if o.as == asRun {
		n.checkAgent(r)
	}
	return err
}

// checkOthers refuses another DaemonSet's nodeinit that names no agent: what it applies would be
// recorded as Cilium's.
func (r *release) checkOthers(n *node) {
	for at := 1; at < len(r.parts); at += 2 {
		other, err := object(r.parts[at], "DaemonSet", "nodeinit")
		if at == r.at || other == nil || err != nil {
			continue
		}
		var init, containers []container
		_ = decode(other, &init, "spec", "template", "spec", "initContainers") // what cannot be read runs no nodeinit
		_ = decode(other, &containers, "spec", "template", "spec", "containers")
		for _, c := range append(init, containers...) {
			if c.records() && !c.namesAgent() {
				n.refuse("DaemonSet %s, container %s: its nodeinit has no --agent, so what it applies would be recorded as Cilium's", other.GetName(), c.Name)
			}
		}
	}
}

var (
	callOfNodeinit = regexp.MustCompile(`(^|[/\s;&|(])nodeinit(\s+(\S+)|$)`)
	namedAgent     = regexp.MustCompile(`\s--agent[=\s][^\s-]`)
	readOnly       = []string{"check", "status", "explain", "version", "help"}
)

// words are the container's command, in a shell or not, without what nodeinit becomes.
func (c container) words() string {
	command, _, _ := strings.Cut(strings.Join(append(slices.Clone(c.Command), c.Args...), " "), " -- ")
	if name, _, _ := strings.Cut(strings.ReplaceAll(path.Base(c.Image), "@", ":"), ":"); len(c.Command) == 0 && name == "nodeinit" {
		return "nodeinit " + command // the image's own command
	}
	return command
}

// records reports whether the container runs nodeinit, and that changes the node.
func (c container) records() bool {
	runs := callOfNodeinit.FindStringSubmatch(c.words())
	return runs != nil && !slices.Contains(readOnly, runs[3])
}

// namesAgent reports whether an agent is named, or may be, in what the chart does not show.
func (c container) namesAgent() bool {
	return namedAgent.MatchString(c.words()) || c.Others["envFrom"] != nil ||
		slices.ContainsFunc(c.Env, func(v variable) bool { return v.Name == "SLIPWAY_AGENT" && (v.Value != "" || v.ValueFrom != nil) })
}

// released has the tags and digests of Cilium's images, from the values.yaml of its charts.
//
//go:embed released.txt
var released string

// releaseTag is the form of the tags that the charts give to Cilium's images.
var releaseTag = regexp.MustCompile(`^v1\.(18|19|20)\.\d+(-(rc|pre)\.\d+)?$`)

// checkImage refuses Cilium's released images, which have no nodeinit, on any registry: what
// tells them is the digest, or else the tag, which an image made from a release may have too.
func (o options) checkImage(n *node) {
	name, digest, _ := strings.Cut(n.image, "@")
	_, tag, _ := strings.Cut(path.Base(name), ":")
	const instead = "has no nodeinit: set image.override to one that has it, or give " + argument + "image-volume=IMAGE"
	switch {
	case digest != "" && strings.Contains(released, " "+digest+"\n"):
		n.refuse("the image %s is a release of Cilium's, by its digest, and %s", n.image, instead)
	case o.hasNodeinit || !releaseTag.MatchString(tag):
	case digest == "" || !strings.Contains(released, tag+" "): // else it is another image of that tag
		n.refuse("the image %s has the tag of a release of Cilium's, which %s; %simage-has-nodeinit says that this one has it", n.image, instead, argument)
	}
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

// flag is the value of one of nodeinit's flags; values of a repeated one are joined.
func (n *node) flag(name string) string {
	var values []string
	for _, flag := range n.flags {
		if value, ok := strings.CutPrefix(flag, name+"="); ok {
			values = append(values, value)
		}
	}
	return strings.Join(values, ",")
}

// checkServer requires an address: without kube-proxy, a ClusterIP is not reachable before
// Cilium runs.
func (o options) checkServer(n *node, config map[string]string) {
	given := n.flag("--k8s-api-server-urls")+n.flag("--k8s-kubeconfig-path") != "" ||
		slices.ContainsFunc(n.env, func(v variable) bool { return v.Name == "KUBERNETES_SERVICE_HOST" })
	if !o.clusterIP && !given && config["kube-proxy-replacement"] == "true" && slices.Contains(n.done, "config") {
		n.refuse("kubeProxyReplacement=true and no address of the API server: its ClusterIP is not reached before Cilium runs, " +
			"so set k8sServiceHost and k8sServicePort, or k8s.apiServerURLs; " + argument + "cluster-ip says that it is reached")
	}
}

// checkPaths requires absolute paths: a relative one would start at nodeinit's directory.
func (n *node) checkPaths() {
	for _, p := range []struct{ flag, value string }{
		{"--cgroup-root", "cgroup.hostRoot"}, {"--cni-bin-dir", "cni.binPath"}, {"--cni-conf-dir", "cni.confPath"},
	} {
		if path := n.flag(p.flag); path != "" && !strings.HasPrefix(path, "/") {
			n.refuse("%s is %s, which is no absolute path", p.value, path)
		}
	}
}

// checkCgroup checks the cgroup root: the agent attaches its programs at the one in its
// configuration. If nodeinit resolves the configuration, it reads the root itself.
func (n *node) checkCgroup(config map[string]string) {
	root := n.flag("--cgroup-root")
	if key, ok := config["cgroup-root"]; ok && key != root && root != "" && !slices.Contains(n.done, "config") {
		n.refuse("cgroup.hostRoot is %s, but the ConfigMap's cgroup-root is %s: the agent would not find the cgroup2 mount", root, key)
	}
}

// foreign are variables that nodeinit reads and the chart's containers do not.
var foreign = strings.Fields(`CGROUP_ROOT NODE_NAME POD_NAMESPACE POD_UID HOST_PREFIX CNI_DIR CILIUM_CNI_CONF CNI_CONF_NAME
	OVERWRITE_LOOPBACK OVERWRITE_CILIUM CILIUM_CUSTOM_CNI_CONF`)

// checkAgent checks the agent's own container, in which nodeinit is to run.
func (n *node) checkAgent(r *release) {
	for _, v := range r.agent.Env {
		if slices.Contains(foreign, v.Name) || strings.HasPrefix(v.Name, "SLIPWAY_") {
			n.refuse("container %s: its variable %s is for the agent, but nodeinit would read it too: --as=init keeps them apart", agentContainer, v.Name)
		}
	}
	for i, name := range n.replaced {
		if got := n.resources[i]; name != "install-cni-binaries" && len(got.Limits)+len(got.Requests) > 0 {
			n.refuse("init container %s: it has resources, and with --as=run there is no init container that could have them: give them to the agent", name)
		}
	}
	if len(r.agent.Command) == 0 {
		n.refuse("container %s: it has no command for nodeinit to execute", agentContainer)
	}
}
