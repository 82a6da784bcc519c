// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// sourceKinds are the kinds of source strings, with the parts that may follow.
var sourceKinds = []struct{ name, parts string }{
	{kindConfigMap, "[:[NAMESPACE/]NAME]"},
	{kindNodeConfig, "[:NAMESPACE[/NAME]]"},
	{kindNode, "[:NAME]"},
	{kindDir, ":PATH"},
	{kindFile, ":PATH"},
	{kindEnv, ":PREFIX"},
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
// What a string leaves out is the namespace and the name of configMap, or nodeName. If
// it is needed and empty, that is an error.
//
// [Ref.Source] makes a source of a local kind; package configresolve/kube makes one of a
// kind in a cluster ([Ref.Cluster]).
func ParseSpecs(list []string, configMap Ref, nodeName string) ([]Ref, error) {
	var specs []Ref
	var errs []error
	for _, text := range strings.Split(strings.Join(list, ","), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		s, err := parseSpec(text, configMap, nodeName)
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

func parseSpec(text string, configMap Ref, nodeName string) (Ref, error) {
	kind, rest, _ := strings.Cut(text, ":")
	var known []string
	for _, k := range sourceKinds {
		known = append(known, k.name)
		if k.name != kind {
			continue
		}
		r := Ref{Kind: kind}
		r.fill(rest, configMap, nodeName)
		if err := r.check(rest); err != nil {
			return Ref{}, fmt.Errorf("source %s: %w (want %s%s)", quote(text), err, k.name, k.parts)
		}
		return r, nil
	}
	meant := Nearest(kind, known)
	if meant != "" {
		meant = ": did you mean " + meant + "?"
	}
	return Ref{}, fmt.Errorf("source %s: unknown kind %s, known are %s%s", quote(text), quote(kind), strings.Join(known, ", "), meant)
}

// fill reads what follows the kind, and adds what that leaves out.
func (r *Ref) fill(rest string, configMap Ref, nodeName string) {
	before, after, both := strings.Cut(rest, "/")
	switch {
	case r.Kind == kindConfigMap && both, r.Kind == kindNodeConfig && rest != "":
		r.Namespace, r.Name = before, after
	case r.Kind == kindConfigMap:
		r.Namespace, r.Name = configMap.Namespace, cmp.Or(rest, configMap.Name)
	case r.Kind == kindNodeConfig:
		r.Namespace = configMap.Namespace
	case r.Kind == kindNode:
		r.Name = cmp.Or(rest, nodeName)
	default:
		r.Name = rest
	}
}

// RFC 1123, as Kubernetes applies it to the names of namespaces and of other objects.
var (
	isNamespace = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`).MatchString
	isName      = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`).MatchString
)

// check returns an error if r, of which rest followed the kind, is invalid.
func (r Ref) check(rest string) error {
	isNamespaced := r.Kind == kindConfigMap || r.Kind == kindNodeConfig
	switch {
	case r.Kind == kindEnv && (rest == "" || strings.ContainsAny(rest, "=\x00")):
		return errors.New("no prefix of variable names given")
	case !r.Cluster() && (rest == "" || strings.ContainsRune(rest, 0)):
		return errNoPath
	case !r.Cluster():
		return nil
	case isNamespaced && r.Namespace == "":
		return errors.New("no namespace given, and no default known")
	case isNamespaced && !isNamespace(r.Namespace):
		return fmt.Errorf("%s is not a namespace", quote(r.Namespace))
	case r.Kind == kindNodeConfig && !strings.Contains(rest, "/"):
		return nil // all of the namespace
	case r.Name == "":
		return errors.New("no name given")
	case len(r.Name) > 253 || !isName(r.Name):
		return fmt.Errorf("%s is not the name of an object", quote(r.Name))
	}
	return nil
}

// Cluster reports whether the source is in a Kubernetes cluster: it has one of the Kind
// constants, or is a custom resource, which the dot in its full name tells.
func (r Ref) Cluster() bool {
	return slices.Contains([]string{kindConfigMap, kindNodeConfig, kindNode}, r.Kind) || strings.Contains(r.Kind, ".")
}

// Source returns the source that r names. An env source reads environ, which is
// usually os.Environ(). If r is of a kind in a cluster, that is an error.
func (r Ref) Source(environ []string) (Source, error) {
	switch r.Kind {
	case kindDir:
		return Dir(r.Name), nil
	case kindFile:
		return File(r.Name), nil
	case kindEnv:
		return Env(r.Name, environ), nil
	}
	if r.Cluster() {
		return Source{}, fmt.Errorf("source %s needs a cluster", r)
	}
	return Source{}, fmt.Errorf("source %s: unknown kind %s", r, quote(r.Kind))
}
