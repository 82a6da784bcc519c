// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

// ParseFile is what File.Read does with a file's content.
var ParseFile = parse
