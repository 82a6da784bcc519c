// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"strings"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// Seen returns checkFile's result, or checkMount's if a type is given, for a process that sees
// mounts while pid 1 sees init.
func Seen(mounts, init, path, fstype string) error {
	s, err := sideOf(mounts, init)
	if err != nil {
		return err
	}
	if fstype == "" {
		return s.file(path)
	}
	return s.mount(path, fstype)
}

// SeenValue returns checkFile's result for a value below /proc/sys. The process is in the
// kernel's first network namespace or in one named ownNet; pid 1's is initNet.
func SeenValue(mounts, init, path string, first bool, ownNet, initNet string) error {
	s, err := sideOf(mounts, init)
	if err != nil {
		return err
	}
	s.net = network{first: first, own: ownNet, init: initNet}
	return s.file(path)
}

func sideOf(mounts, init string) (s side, err error) {
	if s.mounts, err = mountinfo.Parse(strings.NewReader(mounts)); err != nil {
		return s, err
	}
	s.init, err = mountinfo.Parse(strings.NewReader(init))
	return s, err
}
