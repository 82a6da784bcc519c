// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"cmp"
	"sync"
)

// worthwhile is how many files have to be there for another goroutine to be
// sooner started than they are done.
const worthwhile = 16

// spread calls do for parts of 0 to n, from one index to before another, in up
// to atOnce goroutines, and returns the error of the first part that has one.
// What do looks at must not depend on the thread.
func spread(n, atOnce int, do func(from, to int) error) error {
	parts := max(1, min(atOnce, n/worthwhile))
	errs := make([]error, parts)
	var others sync.WaitGroup
	for part := 1; part < parts; part++ {
		others.Go(func() { errs[part] = do(n*part/parts, n*(part+1)/parts) })
	}
	errs[0] = do(0, n/parts)
	others.Wait()
	return cmp.Or(errs...)
}
