// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/once"
	"github.com/slipway-dev/slipway/internal/waiting"
)

// Resolver merges sources under a policy. With only Sources set, it lets every
// source set every key.
type Resolver struct {
	// Sources are merged in order: a later one overrides an earlier one, key by key.
	Sources []Source

	// AllowKeys and DenyKeys restrict the keys that all sources but the first may
	// set, whether or not the key is already set. If AllowKeys is not empty,
	// DenyKeys has no effect. Keys are compared exactly. The first source is the
	// first in the list, even if it does not exist.
	AllowKeys, DenyKeys []string

	// Strict makes an invalid or reserved key an error. Otherwise such a key is
	// reported in the findings and left out.
	Strict bool

	// Revealed lets the texts of explanations and changes show values that look like
	// secrets, which are masked otherwise.
	Revealed bool
}

// Resolve merges sources without restricting which keys each may set.
func Resolve(ctx context.Context, sources ...Source) (*Config, error) {
	return Resolver{Sources: sources}.Resolve(ctx)
}

// Resolve reads every source once, and merges them in order. It reads them one
// after the other, except those in a cluster: the first of these is read alone, and
// then all others at the same time. It stops at the first source in order that
// cannot be read, with an error that names that source.
func (r Resolver) Resolve(ctx context.Context) (*Config, error) {
	if slices.ContainsFunc(r.Sources, func(s Source) bool { return s.Read == nil }) {
		return nil, errors.New("read source: one has no function Read")
	}
	ctx, wait := waiting.On(ctx, "the configuration to be read")
	defer wait.End()
	ctx, cancel := context.WithCancel(once.WithResolution(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	reads := make([]read, len(r.Sources))
	for i, source := range r.Sources {
		reads[i] = func() ([]Layer, error) { return source.Read(ctx) }
	}
	inCluster := func(s Source) bool { return s.Ref.Cluster() }
	firstRemote := slices.IndexFunc(r.Sources, inCluster)
	m := merge{r, newConfig(r)}
	var bad []error
	for i, source := range r.Sources {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("resolve configuration: %w", err)
		}
		layers, err := reads[i]()
		if layers, err = m.tolerate(source, layers, err); err != nil {
			return nil, fmt.Errorf("read source %s: %w", source.Ref, err)
		}
		bad = append(bad, m.add(layers, i > 0, source.trusted || i == 0 && source.Ref.Kind != kindNode)...)
		for j := i + 1; i == firstRemote && j < len(reads); j++ {
			if inCluster(r.Sources[j]) {
				reads[j] = ahead(&running, reads[j])
			}
		}
	}
	if r.Strict && len(bad) > 0 {
		return nil, code.Errorf(code.ConfigInvalid, "resolve configuration: %w", errors.Join(bad...))
	}
	return m.config, nil
}

// read reads a source, or waits for the goroutine that already does. Call it once.
type read func() ([]Layer, error)

// ahead calls read in a goroutine, and returns a function that waits for it.
func ahead(running *sync.WaitGroup, read read) read {
	var layers []Layer
	var err error
	done := make(chan struct{})
	running.Go(func() {
		defer close(done)
		layers, err = read()
	})
	return func() ([]Layer, error) {
		<-done
		return layers, err
	}
}

type merge struct {
	Resolver
	config *Config
}

// tolerate adds a finding instead of the error if an optional source is missing.
func (m *merge) tolerate(source Source, layers []Layer, err error) ([]Layer, error) {
	if source.optional && errors.Is(err, ErrMissing) {
		m.config.report(Finding{Problem: problemMissing, Source: source.Ref, Reason: err.Error()})
		return nil, nil
	}
	return layers, err
}

// add merges the layers of one source and returns its unusable keys as errors.
func (m *merge) add(layers []Layer, gated, trusted bool) (bad []error) {
	from := map[string]Ref{} // the object of this source that set the key
	for _, layer := range layers {
		if len(layer.Values) == 0 && layer.Empty != "" {
			m.config.report(Finding{Problem: problemEmpty, Source: layer.Ref, Part: layer.Part, Reason: layer.Empty})
		}
		for _, key := range slices.Sorted(maps.Keys(layer.Values)) {
			if f, ok := m.unusable(layer, key); ok {
				m.config.report(f)
				bad = append(bad, errors.New(f.String()))
				continue
			}
			given := Given{Value: layer.Values[key], Source: layer.Ref, Part: layer.Part}
			if gated {
				given.Rule = m.rule(key)
			}
			if given.Rule != "" {
				m.config.refuse(key, given)
				continue
			}
			if earlier, ok := from[key]; ok && earlier != layer.Ref {
				m.config.report(Finding{Problem: problemDoubled, Key: key, Source: layer.Ref, Part: layer.Part,
					Reason: "also set by " + earlier.String() + ", which it overrides"})
			}
			from[key] = layer.Ref
			m.config.set(key, given)
			if trusted {
				m.config.trusted[key] = given.Value
			}
		}
	}
	if len(from) > 0 {
		m.config.used(layers)
	}
	return bad
}

func (m *merge) unusable(layer Layer, key string) (Finding, bool) {
	f := Finding{Key: key, Source: layer.Ref, Part: layer.Part}
	if reserved(key) {
		f.Problem, f.Reason = problemReserved, "is written by the resolver itself"
		return f, true
	}
	if err := checkKey(key); err != nil {
		f.Problem, f.Reason = problemInvalid, err.Error()
		return f, true
	}
	return f, false
}

// rule returns the rule of the override policy that drops key, or nothing.
func (r Resolver) rule(key string) string {
	switch {
	case len(r.AllowKeys) > 0 && !slices.Contains(r.AllowKeys, key):
		return "not in the allow list"
	case len(r.AllowKeys) == 0 && slices.Contains(r.DenyKeys, key):
		return "in the deny list"
	}
	return ""
}
