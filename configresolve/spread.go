// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"cmp"
	"sync"
)

// worthwhile is how many small files a goroutine has to have, or it takes longer
// to start than it saves.
const worthwhile = 16

// spread calls do for parts of 0 to n, from one index to before another, each of
// at least the given size and in a goroutine of its own, of which there are up to
// atOnce. It returns the error of the first part that has one. What do looks at
// must not depend on the thread: open files, and names in open directories.
func spread(n, atOnce, least int, do func(from, to int) error) error {
	parts := max(1, min(atOnce, n/least))
	errs := make([]error, parts)
	var others sync.WaitGroup
	for part := 1; part < parts; part++ {
		others.Go(func() { errs[part] = do(n*part/parts, n*(part+1)/parts) })
	}
	errs[0] = do(0, n/parts)
	others.Wait()
	return cmp.Or(errs...)
}
