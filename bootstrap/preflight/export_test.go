// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package preflight

import "context"

// NetworkdBelow is Networkd for a node whose files are below root.
func NetworkdBelow(ctx context.Context, root string) ([]error, error) {
	return networkd{root}.findings(ctx)
}

// BTFIn needs BTF, which the kernel shows in the file.
func BTFIn(file string) KernelFeatures { return KernelFeatures{BTF: true, btfFile: file} }
