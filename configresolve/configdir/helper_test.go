// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
)

type values = map[string]string

func config(t testing.TB, v values) *configresolve.Config {
	t.Helper()
	c, err := configresolve.Resolve(t.Context(), configresolve.Static("s", v))
	require.NoError(t, err)
	return c
}

func all(c *configresolve.Config) values { return maps.Collect(c.All()) }

func write(t *testing.T, path, content string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}
