// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"maps"

	"github.com/slipway-dev/slipway/internal/code"
)

// ErrMissing is matched by the error of a [Source] whose object does not exist.
// [Optional] tolerates this error and no other.
var ErrMissing = code.New(code.ConfigSourceMissing, "source does not exist")

// The kinds of sources in a cluster, as they are written in a spec string and in a
// [Ref]. Package configresolve/kube reads them.
const (
	kindConfigMap  = "config-map"
	kindNodeConfig = "cilium-node-config"
	kindNode       = "node"
)

// The kinds of the sources of this package.
const (
	kindDir    = "dir"
	kindFile   = "file"
	kindEnv    = "env"
	kindStatic = "static"
)

// Ref identifies a source, or the origin of a value. Its JSON form is that of an entry in
// the config-sources key, as agents read it.
type Ref struct {
	Kind      string `json:"kind"`      // one of the Kind constants, PLURAL.GROUP of a custom resource, dir, file, env, static, or a source's own
	Namespace string `json:"namespace"` // empty where there is none
	Name      string `json:"name"`      // object, path or prefix
}

// String formats r as KIND:NAMESPACE/NAME, or KIND:NAME without a namespace, so that
// ParseSpecs reads it back, whatever the defaults.
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
	Empty  string // why there are no values, for a finding; may be empty
}

// Source is one place from which configuration is read: one that this package or
// configresolve/kube makes, or one of a program's own.
//
// [Resolver.Resolve] reads the first source that is in a cluster ([Ref.Cluster]) alone, which
// makes the connection and shows that the server is healthy, and then all others that are,
// each in its own goroutine. So their Read must not depend on the calling thread, such as on
// the files of its mount namespace. Other sources are read in the goroutine that called
// Resolve.
type Source struct {
	// Ref identifies the source as a whole, even if it cannot be read.
	Ref Ref
	// Read returns the layers: a later one overrides an earlier one. Having no layer
	// is not an error. If an object that was asked for does not exist, the error
	// matches ErrMissing. The resolver validates the keys, and does not change the
	// maps.
	Read func(ctx context.Context) ([]Layer, error)

	optional bool
	trusted  bool                             // with destructive keys, whatever its place: see Config.Trusted
	state    func(ctx context.Context) string // for Watch: differs when the content may; nil if only Read can tell
}

// Optional returns source with one difference: if it does not exist ([ErrMissing]),
// it has no keys, and the [Config] has a finding about that. Any other error, such
// as denied access, remains an error.
func Optional(source Source) Source {
	source.optional = true
	return source
}

// Static is a source whose values the program provides, such as defaults or flags. The
// name is shown in explanations.
func Static(name string, values map[string]string) Source {
	ref := Ref{Kind: kindStatic, Name: name}
	return Source{Ref: ref, trusted: true, Read: func(context.Context) ([]Layer, error) {
		return []Layer{{Ref: ref, Values: maps.Clone(values)}}, nil
	}}
}
