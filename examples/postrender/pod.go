// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"errors"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// needed are the capabilities for preparing a host from a container.
var needed = []string{"SYS_ADMIN", "SYS_CHROOT", "SYS_PTRACE"}

// order is the order of the nodeinit steps that a chart may leave out.
var order = []string{"cleanup", "cgroup", "sysctl", "bpffs", "cni"}

// write puts nodeinit into the pod.
func (o options) write(r *release, n *node) error {
	put := o.writeInit
	if o.as == asRun {
		put = o.writeAgent
	}
	return errors.Join(r.dropAppArmor(n), put(r, n), o.writeVolumes(r))
}

// command is nodeinit's command line up to the subcommand.
func (o options) command(n *node, verb string) []string {
	program := "nodeinit"
	if o.imageVolume != "" {
		program = "/slipway/usr/bin/nodeinit"
	}
	command := []string{program, verb, "--agent=cilium", "--host-proc=/hostproc"}
	if slices.Contains(n.done, "config") {
		if n.flag("--source") == "" {
			command = append(command, "--source=config-map:cilium-config,cilium-node-config")
		}
		command = append(command, "--cgroup-root-key=cgroup-root")
	}
	command = append(command, n.flags...)
	if slices.Contains(n.done, "cni") {
		command = append(command, "--plugins=/opt/cni/bin,/cni")
	}
	if o.readOnlyEtc {
		command = append(command, "--sysctl-conf-dir=")
	}
	left := slices.DeleteFunc(slices.Clone(order), func(step string) bool { return slices.Contains(n.done, step) })
	skip := slices.Concat(n.skip, left)
	if len(skip) > 0 {
		command = append(command, "--skip="+strings.Join(skip, ","))
	}
	return command
}

// own are nodeinit's mounts in each container.
func (o options) own() []mount {
	mounts := []mount{{Name: "hostproc", MountPath: "/hostproc", ReadOnly: true}}
	if o.imageVolume != "" {
		mounts = append(mounts, mount{Name: "nodeinit", MountPath: "/slipway", ReadOnly: true})
	}
	return mounts
}

// owner names the owner of the node.
var owner = variable{Name: "POD_UID", ValueFrom: map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.uid"}}}

func (o options) writeInit(r *release, n *node) error {
	root, no := 0, false
	s := security{RunAsUser: &root, ReadOnlyRoot: true, SELinux: n.seLinux, Privileged: n.privileged}
	if !n.privileged { // the API server accepts neither of these together with it
		s.Escalation = &no
		s.Capabilities = capabilities{Drop: []string{"ALL"}, Add: unique(slices.Concat(needed, n.capabilities))}
	}
	if n.unconfined {
		s.AppArmor = map[string]string{"type": "Unconfined"}
	}
	var ours yaml.Node
	err := ours.Encode(container{
		Name: "nodeinit", Image: n.image, PullPolicy: n.pullPolicy, Command: o.command(n, "apply"), Env: append(n.env, owner),
		Resources: n.greatest(), VolumeMounts: append(n.mounts, o.own()...), Termination: "FallbackToLogsOnError", SecurityContext: s,
	})
	return errors.Join(err, set(r.spec, "initContainers", slices.Concat(n.waits, []*yaml.Node{&ours}, n.others)))
}

// writeAgent makes the agent's container start as nodeinit.
func (o options) writeAgent(r *release, n *node) error {
	agent := r.agent
	n.subject = "container " + agentContainer + ": "
	for _, v := range append(n.env, owner) {
		addOnce(n, &agent.Env, v)
	}
	for _, m := range append(n.mounts, o.own()...) {
		addOnce(n, &agent.VolumeMounts, m)
	}
	for i, m := range agent.VolumeMounts { // the plan mounts below it after this container has started
		if (m.Name == "cilium-run" || m.Name == "cilium-cgroup") && m.Propagation == "" {
			agent.VolumeMounts[i].Propagation = "HostToContainer"
		}
	}
	command := o.command(n, "run")
	if s := &agent.SecurityContext; !s.Privileged {
		had := s.Capabilities.Add
		s.Capabilities.Add = unique(slices.Concat(had, needed, n.capabilities, []string{"SETPCAP"})) // to drop the others
		if drop := slices.DeleteFunc(slices.Clone(s.Capabilities.Add), func(name string) bool { return slices.Contains(had, name) }); len(drop) > 0 {
			command = append(command, "--drop-capabilities="+strings.Join(drop, ","))
		}
	}
	agent.Command = slices.Concat(command, []string{"--"}, agent.Command)
	return errors.Join(set(r.spec, "initContainers", n.waits), // the rest stays as in the chart
		set(r.container, "command", agent.Command), set(r.container, "env", agent.Env),
		set(r.container, "volumeMounts", agent.VolumeMounts), set(r.container, "securityContext", agent.SecurityContext))
}

const appArmor = "container.apparmor.security.beta.kubernetes.io/"

// dropAppArmor removes the annotations of containers that are gone, which the API
// server refuses, and notes whether these containers were unconfined.
func (r *release) dropAppArmor(n *node) (err error) {
	annotations := r.pod.GetAnnotations()
	for _, name := range n.replaced {
		profile, ok := annotations[appArmor+name]
		if ok && profile != "unconfined" {
			n.refuse("the annotation %s%s is %s: with that profile nodeinit cannot mount", appArmor, name, profile)
		}
		n.unconfined = n.unconfined || ok
		err = errors.Join(err, r.pod.PipeE(yaml.ClearAnnotation(appArmor+name)))
	}
	return err
}

// writeVolumes adds nodeinit's volumes, and removes those that no container uses any longer:
// the kubelet would make directories for them.
func (o options) writeVolumes(r *release) error {
	var init, containers []container
	err := errors.Join(decode(r.spec, &init, "initContainers"), decode(r.spec, &containers, "containers"))
	used := map[string]bool{}
	for _, c := range append(init, containers...) {
		for _, m := range c.VolumeMounts {
			used[m.Name] = true
		}
	}
	var volumes []*yaml.Node
	for i, v := range r.volumes {
		if used[v.Name] || !slices.Contains(reached, v.Name) {
			volumes = append(volumes, r.spec.Field("volumes").Value.Content()[i])
		}
	}
	var added []any
	if r.hostPath("hostproc") == "" {
		added = append(added, map[string]any{"name": "hostproc", "hostPath": map[string]any{"path": "/proc", "type": "Directory"}})
	}
	if o.imageVolume != "" {
		added = append(added, map[string]any{"name": "nodeinit", "image": map[string]any{"reference": o.imageVolume}})
	}
	var ours yaml.Node
	err = errors.Join(err, ours.Encode(added))
	return errors.Join(err, set(r.spec, "volumes", append(volumes, ours.Content...)))
}

func unique(names []string) (list []string) {
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}
