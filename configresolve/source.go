// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"maps"
)

// ErrMissing is matched by the error of a [Source] whose object does not exist.
// [Optional] tolerates exactly this error.
var ErrMissing = errors.New("source does not exist")

// Kinds of sources, as they stand in a spec string and in a [Ref].
const (
	KindConfigMap  = "config-map"
	KindNodeConfig = "cilium-node-config"
	KindNode       = "node"
	KindDir        = "dir"
	KindFile       = "file"
	KindEnv        = "env"
	KindStatic     = "static"
)

// Ref names where a value came from. Its JSON form is an entry of the
// config-sources key, as agents read it.
type Ref struct {
	Kind      string `json:"kind"`      // one of the Kind constants, or a source's own
	Namespace string `json:"namespace"` // empty where there is none
	Name      string `json:"name"`      // object, path or prefix
}

// String formats r as KIND:NAMESPACE/NAME, or KIND:NAME without a namespace.
func (r Ref) String() string {
	switch {
	case r.Namespace == "" && r.Name == "":
		return r.Kind
	case r.Namespace == "":
		return r.Kind + ":" + r.Name
	case r.Name == "":
		return r.Kind + ":" + r.Namespace
	}
	return r.Kind + ":" + r.Namespace + "/" + r.Name
}

// Layer is what one object of a source sets. A source has one layer for each
// object that it reads: one for a ConfigMap, one for each matching node config.
type Layer struct {
	Ref
	Part   string // the part of the object that holds the values, such as "annotations"; may be empty
	Values map[string]string
}

// Source is one place that configuration comes from.
type Source interface {
	// Ref names the source as a whole, also when it cannot be read.
	Ref() Ref
	// Read returns the layers, the weakest first. No layer is not an error.
	// What does not exist, but was asked for, is an error matching ErrMissing.
	// The resolver validates the keys and does not change the maps.
	Read(ctx context.Context) ([]Layer, error)
}

// Remote is implemented by a source that waits for another machine, such as an
// API server. [Resolver.Resolve] reads the first such source alone, which makes
// the connection and shows that the server is well, and then all others at the
// same time, in goroutines of their own: Read must look at nothing that depends
// on the calling thread, such as the files of its mount namespace. Other sources
// are read in the goroutine that called Resolve.
type Remote interface {
	Source
	// Remote does nothing: having it is what counts.
	Remote()
}

func isRemote(source Source) bool {
	if o, ok := source.(optional); ok {
		return isRemote(o.Source)
	}
	_, ok := source.(Remote)
	return ok
}

// Optional returns source with one difference: where it does not exist
// ([ErrMissing]) it has no keys, which a finding of the [Config] reports. Any
// other error, such as a denied access, stays one.
func Optional(source Source) Source { return optional{source} }

type optional struct{ Source }

// Static is a source given by the program: defaults, or a flag's overrides.
type Static struct {
	Name   string // shown in explanations
	Values map[string]string
}

// Ref names the source static:NAME.
func (s Static) Ref() Ref { return Ref{Kind: KindStatic, Name: s.Name} }

// Read returns the values as one layer.
func (s Static) Read(context.Context) ([]Layer, error) {
	return []Layer{{Ref: s.Ref(), Values: maps.Clone(s.Values)}}, nil
}
