// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve/configdir"
)

// What a journal has kept of an earlier configuration is one, or an error.
func FuzzKept(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"data":{"mode":134218239,"target":"..2026"},"dir":{"mode":2147484141},"files":{"a":{"mode":420,"content":"eA=="}},"links":{"a":"..data/a"}}`,
		`{"links":{"..x":"..data/a"}}`, `{"dir":{"mode":0}}`, `[]`, `{"files":{"../a":{"mode":420}}}`, `{"links":{"../../a":"..data/a"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		names, err := configdir.ParseKept(text)
		if err != nil {
			return
		}
		for _, name := range names {
			require.NotContains(t, name, "/", "it would lead elsewhere")
			require.NotContains(t, []string{"", ".", ".."}, name)
		}
	})
}
