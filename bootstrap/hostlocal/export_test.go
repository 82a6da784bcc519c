// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostlocal

// OfAnyAge returns a store that keeps no address for its age.
func OfAnyAge(s Store) Store {
	s.minAge = -1
	return s
}
