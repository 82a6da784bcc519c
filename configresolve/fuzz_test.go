// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
)

// For any environment, the resolved keys are valid file names.
func FuzzEnv(f *testing.F) {
	for _, seed := range []string{"A_B=1", "A_=x\x00A_B=2", "A_../X=1", "A_B\x00A_b=1", "=", "A_B=\n=\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, environ string) {
		c, err := configresolve.Resolve(t.Context(), configresolve.Env("A_", strings.Split(environ, "\x00")))
		if err != nil {
			return
		}
		for key := range c.All() {
			require.Regexp(t, `^[-._a-zA-Z0-9]{1,253}$`, key)
			require.False(t, key == "." || strings.HasPrefix(key, ".."), key)
		}
	})
}
