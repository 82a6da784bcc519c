// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
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
	seLinux           map[string]string
	capabilities      []string // beyond those that nodeinit always needs
	replaced, waits   []string // names of init containers
	others            []string // to keep, after nodeinit
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
func (o options) node(r *release) (*node, error) {
	n := &node{}
	var errs []error
	for _, c := range r.init {
		known, ok := steps[c.Name]
		switch {
		case ok:
			n.replaced, n.done = append(n.replaced, c.Name), append(n.done, known.step)
			errs = append(errs, about(c.Name, o.add(n, c, known.command)))
		case c.Name == waitForNodeInit:
			n.waits = append(n.waits, c.Name)
		case slices.Contains(strings.Split(o.keep, ","), c.Name):
			n.others = append(n.others, c.Name)
		default:
			errs = append(errs, fmt.Errorf("the init container %s is not known: %skeep=%s leaves it as it is, after nodeinit", c.Name, argument, c.Name))
		}
	}
	if len(n.replaced) == 0 {
		errs = append(errs, errors.New("the agent has no init container of Cilium's chart: is it rendered already?"))
	}
	return n, errors.Join(append(errs, n.addPaths(r), o.check(r, n))...)
}

func about(name string, err error) error {
	if err != nil {
		return fmt.Errorf("init container %s: %w", name, err)
	}
	return nil
}

// argument is how helm passes one of our flags on.
const argument = "--post-renderer-args=--"

// add takes over one container's settings.
func (o options) add(n *node, c container, command string) error {
	n.image, n.pullPolicy = cmp.Or(n.image, c.Image), cmp.Or(n.pullPolicy, c.PullPolicy)
	if n.image != c.Image {
		return fmt.Errorf("its image is %s, but another's is %s", c.Image, n.image)
	}
	n.resources = append(n.resources, c.Resources)
	if len(c.Others)+len(c.Resources.Others) > 0 {
		return fmt.Errorf("it has fields that are not known: %v %v", c.Others, c.Resources.Others)
	}
	return errors.Join(n.addCommand(c, command), n.addEnv(c.Env, strings.Split(o.agentEnv, ",")), n.addMounts(c.VolumeMounts), n.addSecurity(c))
}

// addCommand checks that the container does the same as the step of nodeinit.
func (n *node) addCommand(c container, want string) error {
	words := strings.Fields(strings.Join(slices.Concat(c.Command, c.Args), " "))
	if len(words) > 0 && (words[0] == "bash" || words[0] == "/bin/bash") {
		words[0] = "sh"
	}
	known := len(strings.Fields(want))
	begins := len(words) >= known && strings.Join(words[:known], " ") == want
	if begins && c.Name == "config" {
		return n.addFlags(c.Command[known:])
	}
	if begins && c.Name == waitForKubeProxy {
		n.flags, n.capabilities = append(n.flags, "--wait-for-kube-proxy=4m"), append(n.capabilities, "NET_ADMIN")
		return nil
	}
	if got := strings.Join(words, " "); got != want {
		return fmt.Errorf("nodeinit does not replace its command: %s", got)
	}
	return nil
}

// addFlags takes over build-config's flags, which nodeinit has under the same names.
func (n *node) addFlags(args []string) error {
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		switch name {
		case "--k8s-kubeconfig-path":
		case "--source", "--allow-config-keys", "--deny-config-keys", "--k8s-api-server-urls":
			value = strings.Join(list(value), ",")
		default:
			return fmt.Errorf("its flag %s is not known", arg)
		}
		if !ok {
			return fmt.Errorf("its flag %s has no value", arg)
		}
		if value != "" {
			n.flags = append(n.flags, name+"="+value)
		}
	}
	return nil
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

func (n *node) addEnv(env []variable, agents []string) error {
	for _, v := range env {
		switch {
		case slices.Contains(agents, v.Name):
		case v.Name == "CGROUP_ROOT" && v.Value != "":
			n.flags = append(n.flags, "--cgroup-root="+v.Value)
		case v.Name == "BIN_PATH": // the folder of helpers, which nodeinit does without
		case !slices.Contains(variables, v.Name):
			return fmt.Errorf("its variable %s means nothing to nodeinit: %sagent-env=%s leaves it to the agent", v.Name, argument, v.Name)
		default:
			if err := addOnce(&n.env, v, func(v variable) string { return v.Name }); err != nil {
				return err
			}
		}
	}
	return nil
}

// addOnce adds an item; a second one of the same name is an error if it differs.
func addOnce[T any](list *[]T, item T, name func(T) string) error {
	at := slices.IndexFunc(*list, func(other T) bool { return name(other) == name(item) })
	if at < 0 {
		*list = append(*list, item)
	} else if !reflect.DeepEqual((*list)[at], item) {
		return fmt.Errorf("%s is %v here, but %v elsewhere", name(item), item, (*list)[at])
	}
	return nil
}

// reached are volumes that nodeinit need not mount: it enters the host.
var reached = []string{"hostproc", "cni-path", "bpf-maps", "cilium-cgroup", "cilium-run"}

func (n *node) addMounts(mounts []mount) error {
	for _, m := range mounts {
		if slices.Contains(reached, m.Name) {
			continue
		}
		if err := addOnce(&n.mounts, m, func(m mount) string { return m.MountPath }); err != nil {
			return err
		}
	}
	return nil
}

// chartCapabilities are the capabilities that the chart gives its containers by default.
// nodeinit gets those of them that it needs.
var chartCapabilities = strings.Fields("SYS_ADMIN SYS_CHROOT SYS_PTRACE NET_ADMIN SYS_MODULE SYS_RESOURCE")

func (n *node) addSecurity(c container) error {
	s := c.SecurityContext
	unknown := s.RunAsUser != nil || s.Escalation != nil || s.ReadOnlyRoot || len(s.AppArmor)+len(s.Others) > 0
	if unknown || len(s.Capabilities.Drop) > 0 && !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
		return fmt.Errorf("its security context is not known: %+v", s)
	}
	for _, name := range s.Capabilities.Add {
		if !slices.Contains(chartCapabilities, name) {
			return fmt.Errorf("it gets CAP_%s, which nodeinit does not need", name)
		}
	}
	if c.Name == "config" && slices.Contains(s.Capabilities.Add, "NET_ADMIN") { // to pass a host firewall
		n.capabilities = append(n.capabilities, "NET_ADMIN")
	}
	if c.Name != "mount-bpf-fs" && c.Name != waitForKubeProxy { // those always are
		n.privileged = n.privileged || s.Privileged
	}
	if len(s.SELinux) == 0 {
		return nil
	}
	if n.seLinux == nil {
		n.seLinux = s.SELinux
	}
	if !reflect.DeepEqual(n.seLinux, s.SELinux) {
		return fmt.Errorf("its seLinuxOptions are %v, but another's are %v", s.SELinux, n.seLinux)
	}
	return nil
}

// addPaths takes over the CNI folders. If they are the usual ones, nodeinit asks the runtime
// instead.
func (n *node) addPaths(r *release) error {
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
		return fmt.Errorf("the volume hostproc is %s instead of the host's /proc", path)
	}
	return nil
}

// greatest returns the resources that the containers used in turn: for each kind the largest
// request, and the largest limit if every container has one.
func greatest(all []resources) (sum resources, err error) {
	limits := make([]map[string]string, 0, len(all))
	requests := make([]map[string]string, 0, len(all))
	for _, r := range all {
		limits, requests = append(limits, r.Limits), append(requests, r.Requests)
	}
	var err1, err2 error
	sum.Limits, err1 = largest(limits)
	sum.Requests, err2 = largest(requests)
	for name := range sum.Limits {
		if slices.ContainsFunc(limits, func(l map[string]string) bool { return l[name] == "" }) {
			delete(sum.Limits, name)
		}
	}
	return sum, errors.Join(err1, err2)
}

func largest(all []map[string]string) (map[string]string, error) {
	sum := map[string]string{}
	for _, quantities := range all {
		for name, text := range quantities {
			quantity, err := resource.ParseQuantity(text)
			if err != nil {
				return nil, fmt.Errorf("resources: %s: %s: %w", name, text, err)
			}
			if old, ok := sum[name]; !ok || quantity.Cmp(resource.MustParse(old)) > 0 {
				sum[name] = text
			}
		}
	}
	return sum, nil
}
