// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package controllers stands in for that of sigs.k8s.io/mcs-api, which no module
// proxy has in the version that Cilium 1.20.2 requires: with the one constant that
// its programs use.
package controllers

// DerivedServiceAnnotation is the annotation of a ServiceImport that names the
// Service that was derived from it.
const DerivedServiceAnnotation = "multicluster.kubernetes.io/derived-service"
