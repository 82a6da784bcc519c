// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import "context"

// WriteDirStep is WriteDir that calls step before each change it makes.
func WriteDirStep(ctx context.Context, dir string, c *Config, step func(string)) (bool, error) {
	return writeDir(ctx, dir, c.Data(), step)
}

// ParseFile is what File.Read does with a file's content.
var ParseFile = parse
