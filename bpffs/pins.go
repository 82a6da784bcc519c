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

// maxNamed is the number of pins that an error names.
const maxNamed = 10

// holdsPins returns an error if the bpffs on path contains more than the two files
// that the kernel puts into each bpffs and the paths for which goes is true, which
// are removed earlier.
func holdsPins(k mount.Mounter, path string, goes func(path string) bool) error {
	found := pins{goes: goes}
	if err := found.walk(k, path, "", 0); err != nil {
		return fmt.Errorf("left mounted: %w", err)
	}
	if found.n == 0 {
		return nil
	}
	more := ""
	if n := found.n - len(found.first); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return code.Errorf(code.BPFFSHoldsPins, "left mounted: it holds pins, which would be lost: %s%s (remove them first)",
		strings.Join(found.first, ", "), more)
}

// pins are the pins in a bpffs: the names of the first few, and their number.
type pins struct {
	first []string
	n     int
	goes  func(path string) bool // paths that do not count
}

func (p *pins) add(name string) {
	p.n++
	at, _ := slices.BinarySearch(p.first, name)
	p.first = slices.Insert(p.first, at, name)
	p.first = p.first[:min(len(p.first), maxNamed)]
}

// maxDepth is far deeper than any agent's directories.
const maxDepth = 100

// walk finds the pins below top/dir. A directory does not count as a pin: agents
// leave empty ones behind.
func (p *pins) walk(k mount.Mounter, top, dir string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s has directories nested more than %d deep", top, maxDepth)
	}
	for e, err := range fsmount.Entries(k, filepath.Join(top, dir)) {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(filepath.Join(dir, e.Name()))
		switch {
		case name == "progs.debug" || name == "maps.debug":
		case e.IsDir():
			if err := p.walk(k, top, name, depth+1); err != nil {
				return err
			}
		case !p.goes(filepath.Join(top, dir, e.Name())):
			p.add(name)
		}
	}
	return nil
}
