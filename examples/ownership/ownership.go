// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package ownership has files that describe an agent's ownership on a node, in the form
// that package cleanup/ownershipfile reads. Those that a program of these examples has in
// it are here by name.
package ownership

import _ "embed" // the files

// AWSLeftovers is the content of aws-leftovers.yaml.
//
//go:embed aws-leftovers.yaml
var AWSLeftovers string
