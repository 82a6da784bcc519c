// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const agentContainer = "cilium-agent"

// release is a rendered chart.
type release struct {
	parts     [][]byte    // the stream, as split returns it
	at        int         // which of them is the agent's DaemonSet
	object    *yaml.RNode // the DaemonSet
	pod, spec *yaml.RNode // its template, and the template's spec
	container *yaml.RNode // the agent's
	agent     container
	init      []container
	volumes   []volume
}

func read(in io.Reader) (*release, error) {
	stream, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("read the chart: %w", err)
	}
	r := &release{parts: split(stream)}
	for at := 1; at < len(r.parts); at += 2 {
		if err := r.find(at); err != nil {
			return nil, err
		}
	}
	if r.object == nil {
		return nil, errors.New("there is no DaemonSet with a container " + agentContainer + ": is this Cilium's chart?")
	}
	return r, nil
}

// find keeps a document if it is the agent's.
func (r *release) find(at int) error {
	object, err := object(r.parts[at], "DaemonSet", agentContainer)
	if err != nil || object == nil {
		return err
	}
	agent, err := object.Pipe(yaml.Lookup("spec", "template", "spec", "containers", "[name="+agentContainer+"]"))
	if err != nil || agent == nil {
		return err
	}
	if r.object != nil {
		return errors.New("there are two DaemonSets with a container " + agentContainer)
	}
	unfold(object.YNode())
	r.at, r.object, r.container = at, object, agent
	r.pod = object.Field("spec").Value.Field("template").Value
	r.spec = r.pod.Field("spec").Value
	return errors.Join(decode(agent, &r.agent), decode(r.spec, &r.volumes, "volumes"),
		decode(r.spec, &r.init, "initContainers"))
}

// unfold takes away the style of folded texts: the encoder adds lines to them.
func unfold(node *yaml.Node) {
	node.Style &^= yaml.FoldedStyle
	for _, inside := range node.Content {
		unfold(inside)
	}
}

// decode reads what a node has at a path, if anything.
func decode(node *yaml.RNode, to any, path ...string) error {
	found, err := node.Pipe(yaml.Lookup(path...))
	if err != nil || found == nil {
		return err
	}
	if err := found.YNode().Decode(to); err != nil {
		return fmt.Errorf("the agent's pod: %s: %w", strings.Join(path, "."), err)
	}
	return nil
}

// write writes all as it came, except for the DaemonSet.
func (r *release) write(out io.Writer) error {
	text, err := r.object.String()
	if err != nil {
		return err
	}
	if bytes.HasSuffix(r.parts[r.at-1], []byte("---")) { // the document began in that line
		text = "\n" + text
	}
	r.parts[r.at] = []byte(text)
	_, err = out.Write(bytes.Join(r.parts, nil))
	return err
}

// set gives a field a value, or removes it if there is none.
func set(node *yaml.RNode, field string, value any) error {
	encoded := yaml.Node{Kind: yaml.SequenceNode}
	if nodes, ok := value.([]*yaml.Node); ok { // they keep their comments
		encoded.Content = nodes
	} else if err := encoded.Encode(value); err != nil {
		return err
	}
	if len(encoded.Content) == 0 {
		return node.PipeE(yaml.Clear(field))
	}
	return node.PipeE(yaml.SetField(field, yaml.NewRNode(&encoded)))
}

// configMap is the data of the release's ConfigMap of that name, or nil if it has none.
func (r *release) configMap(name string) (map[string]string, error) {
	for at := 1; at < len(r.parts); at += 2 {
		object, err := object(r.parts[at], "ConfigMap", name)
		if err != nil {
			return nil, err
		}
		if object != nil && object.GetName() == name {
			return object.GetDataMap(), nil
		}
	}
	return nil, nil
}

// hostPath is a volume's path on the host, or empty if there is no such volume.
func (r *release) hostPath(name string) string {
	for _, v := range r.volumes {
		if v.Name == name {
			return v.HostPath.Path
		}
	}
	return ""
}

// container is a container of a pod.
type container struct {
	Name            string         `yaml:"name"`
	Image           string         `yaml:"image,omitempty"`
	PullPolicy      string         `yaml:"imagePullPolicy,omitempty"`
	Command         []string       `yaml:"command,omitempty"`
	Args            []string       `yaml:"args,omitempty"`
	Env             []variable     `yaml:"env,omitempty"`
	Resources       resources      `yaml:"resources,omitempty"`
	VolumeMounts    []mount        `yaml:"volumeMounts,omitempty"`
	Termination     string         `yaml:"terminationMessagePolicy,omitempty"`
	SecurityContext security       `yaml:"securityContext,omitempty"`
	Others          map[string]any `yaml:",inline"`
}

type variable struct {
	Name      string         `yaml:"name"`
	Value     string         `yaml:"value,omitempty"`
	ValueFrom map[string]any `yaml:"valueFrom,omitempty"`
}

func (v variable) key() string { return v.Name }

type mount struct {
	Name        string         `yaml:"name"`
	MountPath   string         `yaml:"mountPath"`
	ReadOnly    bool           `yaml:"readOnly,omitempty"`
	Propagation string         `yaml:"mountPropagation,omitempty"`
	Others      map[string]any `yaml:",inline"`
}

func (m mount) key() string { return m.MountPath }

// resources are quantities by name, as written.
type resources struct {
	Limits   map[string]string `yaml:"limits,omitempty"`
	Requests map[string]string `yaml:"requests,omitempty"`
	Others   map[string]any    `yaml:",inline"`
}

type security struct {
	Privileged   bool              `yaml:"privileged,omitempty"`
	RunAsUser    *int              `yaml:"runAsUser,omitempty"`
	Escalation   *bool             `yaml:"allowPrivilegeEscalation,omitempty"`
	ReadOnlyRoot bool              `yaml:"readOnlyRootFilesystem,omitempty"`
	SELinux      map[string]string `yaml:"seLinuxOptions,omitempty"`
	AppArmor     map[string]string `yaml:"appArmorProfile,omitempty"`
	Capabilities capabilities      `yaml:"capabilities,omitempty"`
	Others       map[string]any    `yaml:",inline"`
}

type capabilities struct {
	Add  []string `yaml:"add,omitempty"`
	Drop []string `yaml:"drop,omitempty"`
}

type volume struct {
	Name     string `yaml:"name"`
	HostPath struct {
		Path string `yaml:"path"`
		Type string `yaml:"type,omitempty"`
	} `yaml:"hostPath,omitempty"`
	Others map[string]any `yaml:",inline"`
}
