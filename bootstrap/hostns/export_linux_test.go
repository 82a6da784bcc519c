// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

// InFirstNetwork reports whether the thread is in the kernel's first network namespace.
func InFirstNetwork() bool { return ownNetwork().first }

// EntryError is the error of a namespace that could not be entered.
type EntryError = entryError
