// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"fmt"
	"slices"
)

// NodeConfigsPath is the path of the definition in [NodeConfigs].
const NodeConfigsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ciliumnodeconfigs.cilium.io"

// NodeConfigs is the manifest of the custom resource for node configs, which serves the given
// ones of its versions v2 and v2alpha1. A selector may be absent or null, as its schema allows.
func NodeConfigs(served ...string) []byte {
	manifest := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ciliumnodeconfigs.cilium.io}
spec:
  group: cilium.io
  scope: Namespaced
  names: {kind: CiliumNodeConfig, listKind: CiliumNodeConfigList, plural: ciliumnodeconfigs, singular: ciliumnodeconfig}
  versions:`
	for i, version := range []string{"v2", "v2alpha1"} {
		manifest += fmt.Sprintf(`
  - name: %s
    served: %v
    storage: %v
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              defaults: {type: object, nullable: true, additionalProperties: {type: string}}
              nodeSelector: {type: object, nullable: true, x-kubernetes-preserve-unknown-fields: true}
`, version, slices.Contains(served, version), i == 0)
	}
	return []byte(manifest)
}
