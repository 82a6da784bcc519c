// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package preflight

import "context"

// NetworkdBelow is Networkd for a node whose files are below root.
func NetworkdBelow(ctx context.Context, root string) ([]error, error) {
	return networkd{root}.findings(ctx)
}

// BTFIn is the check of BTF for a kernel that shows its types in the file.
func BTFIn(file string) ([]error, error) { return btfIn(file, "Acme") }

// CiliumFeatures are those of the check Cilium.
func CiliumFeatures() []Feature { return ciliumFeatures() }
