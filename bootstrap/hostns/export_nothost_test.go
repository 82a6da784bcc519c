// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"strings"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// Seen answers CheckFile, or with a type CheckMount, for who sees these mounts
// and these of pid 1.
func Seen(mounts, init, path, fstype string) error {
	var s side
	var err error
	if s.mounts, err = mountinfo.Parse(strings.NewReader(mounts)); err != nil {
		return err
	}
	if s.init, err = mountinfo.Parse(strings.NewReader(init)); err != nil {
		return err
	}
	if fstype == "" {
		return s.file(path)
	}
	return s.mount(path, fstype)
}
