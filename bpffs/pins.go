// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/mount"
)

// errPinned means that a BPF file system stays mounted, since it holds pins of which no record
// knows.
var errPinned = code.New(code.BPFFSHoldsPins, "it holds pins, which would be lost")

// maxNamed is the number of pins that an error names.
const maxNamed = 10

// holdsPins returns an error if the bpffs on path contains more than the two files
// that the kernel puts into each bpffs and the paths for which isRemoved is true, which
// are removed earlier.
func holdsPins(k mount.Mounter, path string, isRemoved func(path string) bool) error {
	pins, err := pinsIn(k, path, 0, isRemoved)
	if err != nil {
		return fmt.Errorf("left mounted: %w", err)
	}
	if len(pins) == 0 {
		return nil
	}
	slices.Sort(pins)
	first := pins[:min(len(pins), maxNamed)]
	for n, pin := range first {
		first[n] = strings.TrimPrefix(pin, path+string(filepath.Separator))
	}
	return fmt.Errorf("left mounted: %w: %s%s (remove them first)", errPinned, strings.Join(first, ", "), fsmount.More(len(pins)-len(first)))
}

// maxDepth is far deeper than any agent's directories.
const maxDepth = 100

// pinsIn lists the pins below a directory. A directory does not count as a pin: agents
// leave empty ones behind.
func pinsIn(k mount.Mounter, dir string, depth int, isRemoved func(path string) bool) (pins []string, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s is nested more than %d deep", dir, maxDepth)
	}
	for e, err := range fsmount.Entries(k, dir) {
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, e.Name())
		switch {
		case depth == 0 && (e.Name() == "progs.debug" || e.Name() == "maps.debug"):
		case e.IsDir():
			below, err := pinsIn(k, path, depth+1, isRemoved)
			if err != nil {
				return nil, err
			}
			pins = append(pins, below...)
		case !isRemoved(path):
			pins = append(pins, path)
		}
	}
	return pins, nil
}
