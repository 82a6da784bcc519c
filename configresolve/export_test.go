// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

// ParseFile is File.Read's parser.
var ParseFile = parse
