// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"strings"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// Seen answers CheckFile, or CheckMount if given a type, for a process that sees these
// mounts and these of pid 1.
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

// SeenValue answers CheckFile for a value below /proc/sys, for a process in the kernel's
// first network namespace or in that with the name own, with pid 1 in init.
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
