// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
)

// Whatever stands in the environment, and whatever its keys are called: what is
// resolved has keys that are file names.
func FuzzEnv(f *testing.F) {
	for _, seed := range []string{"A_B=1", "A_=x\x00A_B=2", "A_../X=1", "A_B\x00A_b=1", "=", "A_B=\n=\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, environ string) {
		c, err := configresolve.Resolve(t.Context(), configresolve.Env{Prefix: "A_", Environ: strings.Split(environ, "\x00")})
		if err != nil {
			return
		}
		for key := range c.All() {
			require.Regexp(t, `^[-._a-zA-Z0-9]{1,253}$`, key)
			require.False(t, key == "." || strings.HasPrefix(key, ".."), key)
		}
	})
}

// What a journal has kept of an earlier configuration is one, or an error.
func FuzzKept(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"data":{"mode":134218239,"target":"..2026"},"dir":{"mode":2147484141},"files":{"a":{"mode":420,"content":"eA=="}},"links":{"a":"..data/a"}}`,
		`{"links":{"..x":"..data/a"}}`, `{"dir":{"mode":0}}`, `[]`, `{"files":{"../a":{"mode":420}}}`, `{"links":{"../../a":"..data/a"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		names, err := configresolve.ParseKept(text)
		if err != nil {
			return
		}
		for _, name := range names {
			require.NotContains(t, name, "/", "it would lead elsewhere")
			require.NotContains(t, []string{"", ".", ".."}, name)
		}
	})
}
