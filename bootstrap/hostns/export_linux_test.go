// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

// InFirstNetwork reports whether the thread is in the kernel's first network namespace.
func InFirstNetwork() bool { return ownNetwork().first }
