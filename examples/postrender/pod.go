// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"errors"
	"fmt"
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
	unconfined, err := r.dropAppArmor(n)
	if err != nil {
		return err
	}
	if o.as == asRun {
		err = o.writeAgent(r, n)
	} else {
		err = o.writeInit(r, n, unconfined)
	}
	return errors.Join(err, o.writeVolumes(r))
}

// command is nodeinit's command line up to the subcommand.
func (o options) command(n *node, verb string) []string {
	program := "nodeinit"
	if o.imageVolume != "" {
		program = "/slipway/usr/bin/nodeinit"
	}
	command := []string{program, verb, "--host-proc=/hostproc"}
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
	skip := slices.Clone(n.skip)
	for _, step := range order {
		if !slices.Contains(n.done, step) {
			skip = append(skip, step)
		}
	}
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

func (o options) writeInit(r *release, n *node, unconfined bool) error {
	sum, err := greatest(n.resources)
	if err != nil {
		return err
	}
	root, no := 0, false
	s := security{RunAsUser: &root, ReadOnlyRoot: true, SELinux: n.seLinux, Privileged: n.privileged}
	if !n.privileged { // the API server accepts neither of these together with it
		s.Escalation = &no
		s.Capabilities = capabilities{Drop: []string{"ALL"}, Add: unique(slices.Concat(needed, n.capabilities))}
	}
	if unconfined {
		s.AppArmor = map[string]string{"type": "Unconfined"}
	}
	return r.setInit(n, []container{{
		Name: "nodeinit", Image: n.image, PullPolicy: n.pullPolicy, Command: o.command(n, "apply"), Env: append(n.env, owner),
		Resources: sum, VolumeMounts: append(n.mounts, o.own()...), Termination: "FallbackToLogsOnError", SecurityContext: s,
	}})
}

// writeAgent makes the agent's container start as nodeinit.
func (o options) writeAgent(r *release, n *node) error {
	agent := r.agent
	for _, v := range append(n.env, owner) {
		if err := addOnce(&agent.Env, v, func(v variable) string { return v.Name }); err != nil {
			return about(agentContainer, err)
		}
	}
	for _, m := range append(n.mounts, o.own()...) {
		if err := addOnce(&agent.VolumeMounts, m, func(m mount) string { return m.MountPath }); err != nil {
			return about(agentContainer, err)
		}
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
	return errors.Join(r.setInit(n, nil), r.setAgent(agent))
}

// setAgent replaces only the differences, so that the rest stays as in the chart.
func (r *release) setAgent(agent container) error {
	node, err := r.pod.Pipe(yaml.Lookup("spec", "containers", "[name="+agentContainer+"]"))
	if err != nil {
		return err
	}
	for _, changed := range []struct {
		field string
		value any
	}{
		{"command", agent.Command}, {"env", agent.Env}, {"volumeMounts", agent.VolumeMounts}, {"securityContext", agent.SecurityContext},
	} {
		encoded, err := encode(changed.value)
		if err != nil {
			return err
		}
		if err := node.PipeE(yaml.SetField(changed.field, encoded)); err != nil {
			return err
		}
	}
	return nil
}

// setInit replaces the containers: those in waits come before ours, and the kept ones after
// them.
func (r *release) setInit(n *node, ours []container) error {
	kept := map[string]*yaml.Node{}
	old := r.pod.Field("spec").Value.Field("initContainers").Value
	for i, c := range r.init {
		kept[c.Name] = old.Content()[i]
	}
	var all []*yaml.Node
	for _, name := range n.waits {
		all = append(all, kept[name])
	}
	for _, c := range ours {
		encoded, err := encode(c)
		if err != nil {
			return err
		}
		all = append(all, encoded.YNode())
	}
	for _, name := range n.others {
		all = append(all, kept[name])
	}
	if len(all) == 0 {
		return r.pod.Field("spec").Value.PipeE(yaml.Clear("initContainers"))
	}
	old.YNode().Content = all
	return nil
}

const appArmor = "container.apparmor.security.beta.kubernetes.io/"

// dropAppArmor removes the annotations of containers that are gone, which the API
// server refuses, and reports whether these containers were unconfined.
func (r *release) dropAppArmor(n *node) (unconfined bool, err error) {
	annotations := r.pod.GetAnnotations()
	for _, name := range n.replaced {
		profile, ok := annotations[appArmor+name]
		switch {
		case !ok:
			continue
		case profile != "unconfined":
			return false, fmt.Errorf("the annotation %s%s is %s: with that profile nodeinit cannot mount", appArmor, name, profile)
		}
		unconfined = true
		if err := r.pod.PipeE(yaml.ClearAnnotation(appArmor + name)); err != nil {
			return false, err
		}
	}
	return unconfined, nil
}

// writeVolumes adds nodeinit's volumes, and removes those that no container uses any longer:
// the kubelet would make folders for them.
func (o options) writeVolumes(r *release) error {
	spec := r.pod.Field("spec").Value
	volumes, err := spec.Pipe(yaml.LookupCreate(yaml.SequenceNode, "volumes"))
	if err != nil {
		return err
	}
	used, err := mounted(spec)
	if err != nil {
		return err
	}
	volumes.YNode().Content = slices.DeleteFunc(volumes.Content(), func(n *yaml.Node) bool {
		name := yaml.NewRNode(n).Field("name").Value.YNode().Value
		return slices.Contains(reached, name) && !used[name]
	})
	if r.hostPath("hostproc") == "" {
		err = appendTo(volumes, map[string]any{"name": "hostproc", "hostPath": map[string]any{"path": "/proc", "type": "Directory"}})
	}
	if o.imageVolume != "" {
		err = errors.Join(err, appendTo(volumes, map[string]any{"name": "nodeinit", "image": map[string]any{"reference": o.imageVolume}}))
	}
	return err
}

func appendTo(list *yaml.RNode, item any) error {
	encoded, err := encode(item)
	if err != nil {
		return err
	}
	return list.PipeE(yaml.Append(encoded.YNode()))
}

// mounted are the names of volumes that containers mount.
func mounted(spec *yaml.RNode) (map[string]bool, error) {
	used := map[string]bool{}
	for _, field := range []string{"initContainers", "containers"} {
		var all []container
		if err := decode(spec.Field(field), &all, field); err != nil {
			return nil, err
		}
		for _, c := range all {
			for _, m := range c.VolumeMounts {
				used[m.Name] = true
			}
		}
	}
	return used, nil
}

func unique(names []string) (list []string) {
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}
