// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package demo

import "golang.org/x/sys/unix"

func unmount(path string) error { return unix.Unmount(path, unix.UMOUNT_NOFOLLOW) }
