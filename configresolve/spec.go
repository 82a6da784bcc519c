// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

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
	parse func(s *Ref, rest string, d SpecDefaults) error
}{
	{KindConfigMap, "config-map[:[NAMESPACE/]NAME]", (*Ref).parseConfigMap},
	{KindNodeConfig, "cilium-node-config[:NAMESPACE[/NAME]]", (*Ref).parseNodeConfig},
	{KindNode, "node[:NAME]", (*Ref).parseNode},
	{kindDir, "dir:PATH", (*Ref).parsePath},
	{kindFile, "file:PATH", (*Ref).parsePath},
	{kindEnv, "env:PREFIX", (*Ref).parseEnv},
}

// ParseSpecs reads a list of source strings:
//
//	config-map[:[NAMESPACE/]NAME]            a ConfigMap
//	cilium-node-config[:NAMESPACE[/NAME]]    node configs that select the node, or the one named
//	node[:NAME]                              labels and annotations of a Node
//	dir:PATH                                 a mounted ConfigMap
//	file:PATH                                a YAML or JSON map, or a ConfigMap manifest
//	env:PREFIX                               environment variables
//
// Each may contain several, separated by commas, so a path that contains a comma cannot be
// given this way. Empty ones are skipped, but a list of only empty ones is an error, since
// it comes from variables that are not set. An empty list returns nothing. The error for an
// unknown kind lists the known ones.
//
// [Ref.Source] makes a source of a local kind; package configresolve/kube makes one of a
// kind in a cluster ([Ref.Cluster]).
func ParseSpecs(list []string, defaults SpecDefaults) ([]Ref, error) {
	var specs []Ref
	var errs []error
	for _, text := range strings.Split(strings.Join(list, ","), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		s, err := parseSpec(text, defaults)
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

func parseSpec(text string, defaults SpecDefaults) (Ref, error) {
	kind, rest, _ := strings.Cut(text, ":")
	var known []string
	for _, k := range kinds {
		if k.name != kind {
			known = append(known, k.name)
			continue
		}
		s := Ref{Kind: kind}
		if err := k.parse(&s, rest, defaults); err != nil {
			return Ref{}, fmt.Errorf("source %s: %w (want %s)", quote(text), err, k.usage)
		}
		return s, nil
	}
	return Ref{}, fmt.Errorf("source %s: unknown kind %s, known are %s", quote(text), quote(kind), strings.Join(known, ", "))
}

// Cluster reports whether the source is in a Kubernetes cluster: it has one of the Kind
// constants, or is a custom resource, which the dot in its full name tells.
func (r Ref) Cluster() bool {
	return slices.Contains([]string{KindConfigMap, KindNodeConfig, KindNode}, r.Kind) || strings.Contains(r.Kind, ".")
}

// Source returns the source that r names. An env source reads environ, which is
// usually os.Environ(). If r is of a kind in a cluster, that is an error.
func (r Ref) Source(environ []string) (Source, error) {
	switch r.Kind {
	case kindDir:
		return Dir{Path: r.Name}, nil
	case kindFile:
		return File{Path: r.Name}, nil
	case kindEnv:
		return Env{Prefix: r.Name, Environ: environ}, nil
	}
	if r.Cluster() {
		return nil, fmt.Errorf("source %s needs a cluster", r)
	}
	return nil, fmt.Errorf("source %s: unknown kind %s", r, quote(r.Kind))
}

func (s *Ref) parseConfigMap(rest string, d SpecDefaults) error {
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

func (s *Ref) checkObject() error {
	if err := checkNamespace(s.Namespace); err != nil {
		return err
	}
	return checkName(s.Name)
}

func (s *Ref) parseNodeConfig(rest string, d SpecDefaults) error {
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

func (s *Ref) parseNode(rest string, d SpecDefaults) error {
	if s.Name = rest; rest == "" {
		s.Name = d.NodeName
	}
	if s.Name == "" {
		return errors.New("no node name given")
	}
	return checkName(s.Name)
}

func (s *Ref) parsePath(rest string, _ SpecDefaults) error {
	if s.Name = rest; rest == "" || strings.ContainsRune(rest, 0) {
		return errors.New("no path given")
	}
	return nil
}

func (s *Ref) parseEnv(rest string, _ SpecDefaults) error {
	if s.Name = rest; rest == "" || strings.ContainsAny(rest, "=\x00") {
		return errors.New("no prefix of variable names given")
	}
	return nil
}

// RFC 1123, as Kubernetes applies it to the names of namespaces and of other objects.
var (
	isLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString
	isName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`).MatchString
)

func checkNamespace(name string) error {
	switch {
	case name == "":
		return errors.New("no namespace given, and no default known")
	case len(name) > 63 || !isLabel(name):
		return fmt.Errorf("%s is not a namespace", quote(name))
	}
	return nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("no name given")
	case len(name) > 253 || !isName(name):
		return fmt.Errorf("%s is not the name of an object", quote(name))
	}
	return nil
}
