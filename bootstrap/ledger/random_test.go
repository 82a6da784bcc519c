// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

var (
	sequences = flag.Uint64("sequences", 3000, "how many random sequences")
	firstSeed = flag.Uint64("seed", 0, "the first of them")
	findAll   = flag.Bool("all", false, "report each that fails, and not only the first")
)

// Whatever several agents and other programs do to a node, and wherever runs are killed:
// once no agent wants an object any more it is as it was, or as others have last left it.
func TestPLAN6_PLAN14_AnySequenceLeavesTheNodeAsItWas(t *testing.T) {
	for part := range uint64(2) { // of the sequences, at the same time
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for seed := *firstSeed + part; seed < *firstSeed+*sequences; seed += 2 {
					holds(t, seed, randomScript(rand.New(rand.NewPCG(seed, 1))))
				}
			})
		})
	}
}

// holds reports a script that does not hold, as short as it can be.
func holds(t *testing.T, seed uint64, ops []op) {
	t.Helper()
	if _, err := run(ops); err != nil {
		ops = shrink(ops)
		p, err := run(ops)
		t.Errorf("seed %d: %v\nscript:\n%strace:\n%s", seed, err, scriptOf(ops), strings.Join(p.trace, "\n"))
		if !*findAll {
			t.FailNow()
		}
	}
}

// The same holds on a file system.
func TestPLAN6_SEC1_AnySequenceLeavesTheFileSystemAsItWas(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for seed := *firstSeed; seed < *firstSeed+*sequences/10; seed++ {
			ops := randomScript(rand.New(rand.NewPCG(seed, 2)))
			require.NoError(t, os.RemoveAll(root))
			require.NoError(t, os.Mkdir(root, 0o755))
			p, err := runIn(root, ops)
			require.NoError(t, err, "seed %d, script:\n%s\n%s", seed, scriptOf(ops), strings.Join(p.trace, "\n"))
		}
	})
}
