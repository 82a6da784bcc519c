// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// node holds the chart's settings for preparing a node.
type node struct {
	image, pullPolicy string
	flags             []string // nodeinit's, except for the steps to leave out
	done, skip        []string // steps that the chart has too, and steps that only nodeinit has
	env               []variable
	mounts            []mount
	resources         []resources // of each container
	privileged        bool
	unconfined        bool // without an AppArmor profile
	seLinux           map[string]string
	capabilities      []string     // beyond those that nodeinit always needs
	replaced          []string     // names of init containers
	waits, others     []*yaml.Node // those that stay, before nodeinit and after it
	subject           string       // what the next causes are about
	causes            []error      // what nodeinit cannot do as the chart says
}

// refuse notes a cause, so that all are told in one go.
func (n *node) refuse(format string, args ...any) {
	n.causes = append(n.causes, fmt.Errorf("%s%w", n.subject, fmt.Errorf(format, args...)))
}

// steps maps the chart's init containers to the nodeinit steps that replace them, and the words
// of their commands. The charts 1.18 to 1.20 have these and no others.
var steps = map[string]struct{ step, command string }{
	"config":                  {"config", "cilium-dbg build-config"}, // and its flags
	"mount-cgroup":            {"cgroup", `sh -ec cp /usr/bin/cilium-mount /hostbin/cilium-mount; nsenter --cgroup=/hostproc/1/ns/cgroup --mount=/hostproc/1/ns/mnt "${BIN_PATH}/cilium-mount" $CGROUP_ROOT; rm /hostbin/cilium-mount`},
	"apply-sysctl-overwrites": {"sysctl", `sh -ec cp /usr/bin/cilium-sysctlfix /hostbin/cilium-sysctlfix; nsenter --mount=/hostproc/1/ns/mnt "${BIN_PATH}/cilium-sysctlfix"; rm /hostbin/cilium-sysctlfix`},
	"mount-bpf-fs":            {"bpffs", `sh -c -- mount | grep "/sys/fs/bpf type bpf" || mount -t bpf bpf /sys/fs/bpf`},
	"clean-cilium-state":      {"cleanup", "/init-container.sh"},
	"install-cni-binaries":    {"cni", "/install-plugin.sh"},
	waitForKubeProxy:          {"kube-proxy", "sh -c while true do if iptables-nft-save -t mangle | grep -E"}, // and the rest of its loop
}

const (
	waitForNodeInit  = "wait-for-node-init" // it stays, before nodeinit
	waitForKubeProxy = "wait-for-kube-proxy"
)

// node collects the settings of the init containers.
func (o options) node(r *release) *node {
	n := &node{image: r.agent.Image} // the chart has one for all
	for i, c := range r.init {
		n.subject = "init container " + c.Name + ": "
		known, ok := steps[c.Name]
		switch {
		case ok:
			n.replaced, n.done = append(n.replaced, c.Name), append(n.done, known.step)
			o.add(n, c, known.command)
		case c.Name == waitForNodeInit:
			n.waits = append(n.waits, r.spec.Field("initContainers").Value.Content()[i])
		case slices.Contains(o.keep, c.Name):
			n.others = append(n.others, r.spec.Field("initContainers").Value.Content()[i])
			if o.as == asRun {
				n.refuse("it comes after nodeinit, and with --as=run it would come before it: leave out --as=run")
			}
		default:
			n.causes = append(n.causes, fmt.Errorf("the init container %s is not known: %skeep=%s leaves it as it is, after nodeinit", c.Name, argument, c.Name))
		}
	}
	n.subject = ""
	if len(n.replaced) == 0 {
		n.refuse("the agent has no init container of Cilium's chart: is it rendered already?")
	}
	return n
}

// argument is how helm passes one of our flags on.
const argument = "--post-renderer-args=--"

// add takes over one container's settings.
func (o options) add(n *node, c container, command string) {
	n.pullPolicy, n.resources = cmp.Or(n.pullPolicy, c.PullPolicy), append(n.resources, c.Resources)
	if n.image != c.Image {
		n.refuse("its image is %s, but another's is %s", c.Image, n.image)
	}
	if len(c.Others)+len(c.Resources.Others) > 0 {
		n.refuse("it has fields that are not known: %v %v", c.Others, c.Resources.Others)
	}
	n.addCommand(c, command)
	n.addEnv(c.Env, o.agentEnv)
	n.addMounts(c.VolumeMounts)
	n.addSecurity(c)
}

// addCommand checks that the container does the same as the step of nodeinit.
func (n *node) addCommand(c container, want string) {
	args := slices.Concat(c.Command, c.Args)
	if c.Name == "config" && len(args) >= 2 && strings.Join(args[:2], " ") == want {
		n.addFlags(args[2:])
		return
	}
	words := strings.Fields(strings.Join(args, " "))
	if len(words) > 0 && (words[0] == "bash" || words[0] == "/bin/bash") {
		words[0] = "sh"
	}
	got := strings.Join(words, " ")
	switch {
	case c.Name == waitForKubeProxy && strings.HasPrefix(got, want):
		n.flags, n.capabilities = append(n.flags, "--wait-for-kube-proxy=4m"), append(n.capabilities, "NET_ADMIN")
	case c.Name == "config" || got != want:
		n.refuse("nodeinit does not replace its command: %s", got)
	}
}

// lists are build-config's flags that have several values, and may be repeated.
var lists = strings.Fields("--source --allow-config-keys --deny-config-keys --k8s-api-server-urls")

// addFlags takes over build-config's flags, which nodeinit has under the same names.
func (n *node) addFlags(args []string) {
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if slices.Contains(lists, name) {
			value = strings.Join(list(value), ",")
		}
		switch {
		case !slices.Contains(lists, name) && name != "--k8s-kubeconfig-path":
			n.refuse("its flag %s is not known", arg)
		case !ok:
			n.refuse("its flag %s has no value", arg)
		case value != "":
			n.flags = append(n.flags, name+"="+value)
		}
	}
}

// list splits a value into several as Cilium does: at commas, or at blanks if it has no commas.
func list(value string) []string {
	if !strings.Contains(value, ",") {
		return strings.Fields(value)
	}
	return strings.Split(value, ",")
}

// variables of the environment with the same meaning to nodeinit, or to its libraries.
var variables = strings.Fields(`K8S_NODE_NAME CILIUM_K8S_NAMESPACE KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT
	CILIUM_ALL_STATE CLEAN_CILIUM_STATE CILIUM_BPF_STATE CLEAN_CILIUM_BPF_STATE WRITE_CNI_CONF_WHEN_READY
	HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy SSL_CERT_FILE SSL_CERT_DIR
	GODEBUG GOGC GOMAXPROCS GOMEMLIMIT GOTRACEBACK KUBE_CLIENT_BACKOFF_BASE KUBE_CLIENT_BACKOFF_DURATION`)

func (n *node) addEnv(env []variable, agents []string) {
	for _, v := range env {
		switch {
		case slices.Contains(agents, v.Name):
		case v.Name == "CGROUP_ROOT" && v.Value != "":
			n.flags = append(n.flags, "--cgroup-root="+v.Value)
		case v.Name == "BIN_PATH": // the directory of helpers, which nodeinit does without
		case !slices.Contains(variables, v.Name):
			n.refuse("its variable %s means nothing to nodeinit: %sagent-env=%s leaves it to the agent", v.Name, argument, v.Name)
		default:
			addOnce(n, &n.env, v)
		}
	}
}

// addOnce adds an item; a second one with the same key is refused if it differs.
func addOnce[T interface{ key() string }](n *node, list *[]T, item T) {
	at := slices.IndexFunc(*list, func(other T) bool { return other.key() == item.key() })
	if at < 0 {
		*list = append(*list, item)
	} else if !reflect.DeepEqual((*list)[at], item) {
		n.refuse("%s is %v here, but %v elsewhere", item.key(), item, (*list)[at])
	}
}

// reached are volumes that nodeinit need not mount: it enters the host.
var reached = []string{"hostproc", "cni-path", "bpf-maps", "cilium-cgroup", "cilium-run"}

func (n *node) addMounts(mounts []mount) {
	for _, m := range mounts {
		if !slices.Contains(reached, m.Name) {
			addOnce(n, &n.mounts, m)
		}
	}
}

// chartCapabilities are the capabilities that the chart gives its containers by default.
// nodeinit gets those of them that it needs.
var chartCapabilities = strings.Fields("SYS_ADMIN SYS_CHROOT SYS_PTRACE NET_ADMIN SYS_MODULE SYS_RESOURCE")

func (n *node) addSecurity(c container) {
	s := c.SecurityContext
	unknown := s.RunAsUser != nil || s.Escalation != nil || s.ReadOnlyRoot || len(s.AppArmor)+len(s.Others) > 0
	if unknown || len(s.Capabilities.Drop) > 0 && !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
		n.refuse("its security context is not known: %+v", s)
	}
	for _, name := range s.Capabilities.Add {
		if !slices.Contains(chartCapabilities, name) {
			n.refuse("it gets CAP_%s, which nodeinit does not need", name)
		}
	}
	if c.Name == "config" && slices.Contains(s.Capabilities.Add, "NET_ADMIN") { // to pass a host firewall
		n.capabilities = append(n.capabilities, "NET_ADMIN")
	}
	if c.Name != "mount-bpf-fs" && c.Name != waitForKubeProxy { // those always are
		n.privileged = n.privileged || s.Privileged
	}
	if len(n.seLinux) == 0 {
		n.seLinux = s.SELinux
	}
	if len(s.SELinux) > 0 && !reflect.DeepEqual(n.seLinux, s.SELinux) {
		n.refuse("its seLinuxOptions are %v, but another's are %v", s.SELinux, n.seLinux)
	}
}

// addPaths takes over the CNI directories. If they are the usual ones, nodeinit asks the runtime
// instead.
func (n *node) addPaths(r *release) {
	for _, p := range []struct{ volume, usual, flag string }{
		{"cni-path", "/opt/cni/bin", "--cni-bin-dir"}, {"etc-cni-netd", "/etc/cni/net.d", "--cni-conf-dir"},
	} {
		if path := r.hostPath(p.volume); path != "" && path != p.usual && slices.Contains(n.done, "cni") {
			n.flags = append(n.flags, p.flag+"="+path)
		}
	}
	if path := r.hostPath("cilium-run"); path != "" && path != "/var/run/cilium" { // the kubelet makes that one
		n.skip = append(n.skip, "host-paths")
	}
	if path := r.hostPath("hostproc"); path != "" && path != "/proc" {
		n.refuse("the volume hostproc is %s instead of the host's /proc", path)
	}
}

// greatest returns the resources that the containers used in turn: for each kind the largest
// request, and the largest limit if every container has one.
func (n *node) greatest() resources {
	sum := resources{Limits: map[string]string{}, Requests: map[string]string{}}
	for _, r := range n.resources {
		n.raise(sum.Limits, r.Limits)
		n.raise(sum.Requests, r.Requests)
	}
	for name := range sum.Limits {
		if slices.ContainsFunc(n.resources, func(r resources) bool { return r.Limits[name] == "" }) {
			delete(sum.Limits, name)
		}
	}
	return sum
}

func (n *node) raise(sum, quantities map[string]string) {
	for name, text := range quantities {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			n.refuse("resources: %s: %s: %w", name, text, err)
		} else if old, ok := sum[name]; !ok || quantity.Cmp(resource.MustParse(old)) > 0 {
			sum[name] = text
		}
	}
}
