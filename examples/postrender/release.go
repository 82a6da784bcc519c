// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const agentContainer = "cilium-agent"

// release is a rendered chart.
type release struct {
	objects []*yaml.RNode
	pod     *yaml.RNode // the template of the agent's DaemonSet
	agent   container
	init    []container
	volumes []volume
}

func read(in io.Reader) (*release, error) {
	objects, err := (&kio.ByteReader{Reader: in, OmitReaderAnnotations: true}).Read()
	if err != nil {
		return nil, fmt.Errorf("read the chart: %w", err)
	}
	r := &release{objects: objects}
	for _, object := range objects {
		if err := r.find(object); err != nil {
			return nil, err
		}
	}
	if r.pod == nil {
		return nil, errors.New("there is no DaemonSet with a container " + agentContainer + ": is this Cilium's chart?")
	}
	return r, nil
}

// find keeps the object if it is the agent's.
func (r *release) find(object *yaml.RNode) error {
	if object.GetKind() != "DaemonSet" {
		return nil
	}
	pod, err := object.Pipe(yaml.Lookup("spec", "template"))
	if err != nil || pod == nil {
		return err
	}
	agent, err := pod.Pipe(yaml.Lookup("spec", "containers", "[name="+agentContainer+"]"))
	if err != nil || agent == nil {
		return err
	}
	if r.pod != nil {
		return errors.New("there are two DaemonSets with a container " + agentContainer)
	}
	r.pod = pod
	return errors.Join(
		decode(agent, &r.agent, "container "+agentContainer),
		decode(pod.Field("spec").Value.Field("initContainers"), &r.init, "the init containers"),
		decode(pod.Field("spec").Value.Field("volumes"), &r.volumes, "the volumes"),
	)
}

// decode reads a node, or the value of a field, if there is one.
func decode[N *yaml.RNode | *yaml.MapNode](n N, to any, what string) error {
	var node *yaml.RNode
	switch n := any(n).(type) {
	case *yaml.RNode:
		node = n
	case *yaml.MapNode:
		if n.IsNilOrEmpty() {
			return nil
		}
		node = n.Value
	}
	if err := node.YNode().Decode(to); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// configMap is the data of one of the release's ConfigMaps, or nil if the release has none of
// that name.
func (r *release) configMap(name string) map[string]string {
	for _, object := range r.objects {
		if object.GetKind() == "ConfigMap" && object.GetName() == name {
			return object.GetDataMap()
		}
	}
	return nil
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

type mount struct {
	Name        string         `yaml:"name"`
	MountPath   string         `yaml:"mountPath"`
	ReadOnly    bool           `yaml:"readOnly,omitempty"`
	Propagation string         `yaml:"mountPropagation,omitempty"`
	Others      map[string]any `yaml:",inline"`
}

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

// encode makes a node from a value.
func encode(v any) (*yaml.RNode, error) {
	var text bytes.Buffer
	if err := yaml.NewEncoder(&text).Encode(v); err != nil {
		return nil, err
	}
	return yaml.Parse(text.String())
}
