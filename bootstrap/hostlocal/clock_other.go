// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package hostlocal

import "time"

func clockOfBoot() time.Time { return time.Time{} }
