// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/dynamic"
)

// races bounds the attempts in a row that lose a race against other writers of an object.
// Two writers that race need one more attempt.
const races = 5

// Definitions is the state in which the cluster has and serves an agent's custom
// resources, in its version or a newer one. It is a bootstrap.Action. It needs get,
// create and update on customresourcedefinitions.
type Definitions struct {
	Client dynamic.Interface

	// List holds the definitions (apiextensions.k8s.io/v1).
	List []*unstructured.Unstructured

	// VersionLabel is the label that holds the version of a definition's schema, such
	// as 1.31.11, in List and in the cluster: Cilium's is
	// io.cilium.k8s.crd.schema.version. A definition in the cluster with a higher
	// version stays as it is, since a newer agent has registered it; one with a lower
	// version, or without a valid one, is replaced.
	VersionLabel string
}

// Check lists what Apply would create, update or wait for.
func (d Definitions) Check(ctx context.Context) (changes []string, err error) {
	if err := d.validate(); err != nil {
		return nil, err
	}
	for _, ours := range d.List {
		name := ours.GetName()
		theirs, err := d.get(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case theirs == nil:
			changes = append(changes, fmt.Sprintf("create the custom resource %s in version %s", name, d.version(ours)))
		case d.older(theirs, ours):
			changes = append(changes, fmt.Sprintf("update the custom resource %s to version %s (is %q)", name, d.version(ours), d.version(theirs)))
		case notEstablished(theirs) != "":
			changes = append(changes, fmt.Sprintf("wait for the custom resource %s, which %s", name, notEstablished(theirs)))
		}
	}
	return changes, nil
}

// Apply creates and updates the definitions, and waits until they are established, for
// five minutes at most.
func (d Definitions) Apply(ctx context.Context) error {
	if err := d.validate(); err != nil {
		return err
	}
	var names []string
	for _, ours := range d.List {
		if err := d.apply(ctx, ours); err != nil {
			return err
		}
		names = append(names, ours.GetName())
	}
	return Established(d.Client, names...).Wait(ctx)
}

// apply tries again if another client was faster.
func (d Definitions) apply(ctx context.Context, ours *unstructured.Unstructured) (err error) {
	for range races {
		if err = d.try(ctx, ours); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return err
}

func (d Definitions) try(ctx context.Context, ours *unstructured.Unstructured) error {
	theirs, err := d.get(ctx, ours.GetName())
	switch {
	case err != nil:
		return err
	case theirs == nil:
		_, err := d.Client.Resource(definitions).Create(ctx, ours, metav1.CreateOptions{})
		return explain(err, "create", definitions, "", "", ours.GetName())
	case !d.older(theirs, ours):
		return nil
	}
	update := theirs.DeepCopy() // keeping the labels and annotations of others
	update.Object["spec"] = ours.DeepCopy().Object["spec"]
	update.SetLabels(merged(theirs.GetLabels(), ours.GetLabels()))
	update.SetAnnotations(merged(theirs.GetAnnotations(), ours.GetAnnotations()))
	_, err = d.Client.Resource(definitions).Update(ctx, update, metav1.UpdateOptions{})
	return explain(err, "update", definitions, "", "", ours.GetName())
}

func merged(theirs, ours map[string]string) map[string]string {
	all := maps.Clone(theirs)
	if all == nil {
		return ours
	}
	maps.Copy(all, ours)
	return all
}

// get returns nil if there is none.
func (d Definitions) get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	crd, err := get(ctx, d.Client, definitions, "", name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return crd, explain(err, "get", definitions, "", "", name)
}

func (d Definitions) validate() error {
	switch {
	case d.Client == nil:
		return errNoClient
	case len(d.List) == 0:
		return errors.New("no definitions of custom resources given")
	case d.VersionLabel == "":
		return errors.New("no label given for the version of a custom resource's schema: an older agent would replace a newer one's")
	}
	for _, ours := range d.List {
		if _, err := version.ParseGeneric(d.version(ours)); err != nil {
			return fmt.Errorf("definition of the custom resource %s: its label %s: %w (want one such as 1.31.11)", ours.GetName(), d.VersionLabel, err)
		}
	}
	return nil
}

func (d Definitions) version(crd *unstructured.Unstructured) string {
	return strings.TrimSpace(crd.GetLabels()[d.VersionLabel])
}

// older reports whether ours, whose version is valid, must replace theirs.
func (d Definitions) older(theirs, ours *unstructured.Unstructured) bool {
	is, err := version.ParseGeneric(d.version(theirs))
	return err != nil || is.LessThan(version.MustParseGeneric(d.version(ours)))
}
