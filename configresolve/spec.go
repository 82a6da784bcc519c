// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Spec is a parsed source string, such as config-map:kube-system/cilium-config.
// [Spec.Source] makes a source of a local kind; package configresolve/kube makes
// one of a kind in a cluster ([Spec.Cluster]).
type Spec struct {
	Kind      string // one of the Kind constants, dir, file or env
	Namespace string // of a config map or of node configs
	Name      string // of the object: empty for all node configs of the namespace
	Path      string // of a directory or file
	Prefix    string // of environment variables
}

// SpecDefaults provides the parts that a source string leaves out. The caller fills
// it from flags and environment variables. If a default is needed and empty, that
// is an error.
type SpecDefaults struct {
	Namespace string
	ConfigMap string // name
	NodeName  string
}

// kinds of source strings, with the parts that may follow the colon.
var kinds = []struct {
	name  string
	usage string
	parse func(s *Spec, rest string, d SpecDefaults) error
}{
	{KindConfigMap, "config-map[:[NAMESPACE/]NAME]", (*Spec).parseConfigMap},
	{KindNodeConfig, "cilium-node-config[:NAMESPACE[/NAME]]", (*Spec).parseNodeConfig},
	{KindNode, "node[:NAME]", (*Spec).parseNode},
	{kindDir, "dir:PATH", (*Spec).parsePath},
	{kindFile, "file:PATH", (*Spec).parsePath},
	{kindEnv, "env:PREFIX", (*Spec).parseEnv},
}

// ParseSpec reads one source string:
//
//	config-map[:[NAMESPACE/]NAME]            a ConfigMap
//	cilium-node-config[:NAMESPACE[/NAME]]    node configs that select the node, or the one named
//	node[:NAME]                              labels and annotations of a Node
//	dir:PATH                                 a mounted ConfigMap
//	file:PATH                                a YAML or JSON map, or a ConfigMap manifest
//	env:PREFIX                               environment variables
//
// The error for an unknown kind lists the known ones.
func ParseSpec(text string, defaults SpecDefaults) (Spec, error) {
	kind, rest, _ := strings.Cut(text, ":")
	for _, k := range kinds {
		if k.name != kind {
			continue
		}
		s := Spec{Kind: kind}
		if err := k.parse(&s, rest, defaults); err != nil {
			return Spec{}, fmt.Errorf("source %s: %w (want %s)", quote(text), err, k.usage)
		}
		return s, nil
	}
	var known []string
	for _, k := range kinds {
		known = append(known, k.name)
	}
	return Spec{}, fmt.Errorf("source %s: unknown kind %s, known are %s", quote(text), quote(kind), strings.Join(known, ", "))
}

// ParseSpecs reads a list of source strings, each of which may contain several,
// separated by commas. Empty ones are skipped, but a list of only empty ones is an
// error, since it comes from variables that are not set. An empty list returns no
// specs. A path that contains a comma cannot be given this way; use [ParseSpec].
func ParseSpecs(list []string, defaults SpecDefaults) ([]Spec, error) {
	var specs []Spec
	var errs []error
	for _, text := range strings.Split(strings.Join(list, ","), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		s, err := ParseSpec(text, defaults)
		specs, errs = append(specs, s), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(list) > 0 && len(specs) == 0 {
		return nil, fmt.Errorf("source list %s names no source", quote(strings.Join(list, ",")))
	}
	return specs, nil
}

// Cluster reports whether the source is in a Kubernetes cluster.
func (s Spec) Cluster() bool { return clusterKind(s.Kind) }

// clusterKind recognises a custom resource by the dot in its full name.
func clusterKind(kind string) bool {
	return slices.Contains([]string{KindConfigMap, KindNodeConfig, KindNode}, kind) || strings.Contains(kind, ".")
}

// String formats s so that ParseSpec reads it back, whatever the defaults.
func (s Spec) String() string {
	return Ref{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name + s.Path + s.Prefix}.String()
}

// Source returns the source that s names. An env source reads environ, which is
// usually os.Environ(). If s is of a kind in a cluster, that is an error.
func (s Spec) Source(environ []string) (Source, error) {
	switch s.Kind {
	case kindDir:
		return Dir{Path: s.Path}, nil
	case kindFile:
		return File{Path: s.Path}, nil
	case kindEnv:
		return Env{Prefix: s.Prefix, Environ: environ}, nil
	}
	if s.Cluster() {
		return nil, fmt.Errorf("source %s needs a cluster", s)
	}
	return nil, fmt.Errorf("source %s: unknown kind %s", s, quote(s.Kind))
}

func (s *Spec) parseConfigMap(rest string, d SpecDefaults) error {
	s.Namespace, s.Name = d.Namespace, d.ConfigMap
	if rest != "" {
		namespace, name, both := strings.Cut(rest, "/")
		if both {
			s.Namespace, s.Name = namespace, name
		} else {
			s.Name = rest
		}
	}
	return s.checkObject()
}

func (s *Spec) checkObject() error {
	if err := checkNamespace(s.Namespace); err != nil {
		return err
	}
	return checkName(s.Name)
}

func (s *Spec) parseNodeConfig(rest string, d SpecDefaults) error {
	namespace, name, named := strings.Cut(rest, "/")
	s.Namespace, s.Name = namespace, name
	if rest == "" {
		s.Namespace = d.Namespace
	}
	if named {
		return s.checkObject()
	}
	return checkNamespace(s.Namespace)
}

func (s *Spec) parseNode(rest string, d SpecDefaults) error {
	if s.Name = rest; rest == "" {
		s.Name = d.NodeName
	}
	if s.Name == "" {
		return errors.New("no node name given")
	}
	return checkName(s.Name)
}

func (s *Spec) parsePath(rest string, _ SpecDefaults) error {
	if s.Path = rest; rest == "" || strings.ContainsRune(rest, 0) {
		return errors.New("no path given")
	}
	return nil
}

func (s *Spec) parseEnv(rest string, _ SpecDefaults) error {
	if s.Prefix = rest; rest == "" || strings.ContainsAny(rest, "=\x00") {
		return errors.New("no prefix of variable names given")
	}
	return nil
}

func checkNamespace(name string) error {
	if name == "" {
		return errors.New("no namespace given, and no default known")
	}
	if len(name) > 63 || strings.Contains(name, ".") || !dnsName(name) {
		return fmt.Errorf("%s is not a namespace", quote(name))
	}
	return nil
}

func checkName(name string) error {
	if name == "" {
		return errors.New("no name given")
	}
	if len(name) > 253 || !dnsName(name) {
		return fmt.Errorf("%s is not the name of an object", quote(name))
	}
	return nil
}

// dnsName applies RFC 1123 as Kubernetes does to names of objects: lower-case
// letters, digits and '-', in parts separated by '.', each starting and ending
// with a letter or digit.
func dnsName(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || part[0] == '-' || part[len(part)-1] == '-' {
			return false
		}
		for _, r := range part {
			if r != '-' && !(r >= 'a' && r <= 'z') && !(r >= '0' && r <= '9') {
				return false
			}
		}
	}
	return true
}
