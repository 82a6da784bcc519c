// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package memory runs nodeinit's commands in a memory cgroup of 64 MiB, beside what
// others may let grow, and prints what each takes as a table.
package memory
