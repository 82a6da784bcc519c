// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"

	"github.com/slipway-dev/slipway/cleanup/internal/bpfattach"
)

// programs finds out which loaded BPF programs are owned.
type programs struct {
	own     *owned
	pins    *pins
	known   map[uint32]bpfProgram
	links   lazy[*bpfattach.Links]
	objects *pinnedObjects // nil until they are looked at
}

// bpfProgram describes a loaded program.
type bpfProgram struct {
	name  string
	owned bool
}

// owns reports whether a program is owned: by its name, by a map that it uses, or because
// it is pinned. A program that is gone is not owned.
func (p *programs) owns(id uint32) (bool, error) {
	if id == 0 || !p.own.ownsPrograms() {
		return false, nil
	}
	if known, ok := p.known[id]; ok {
		return known.owned, nil
	}
	program, err := p.look(id)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at BPF program %d: %w", id, bpfattach.Hint(err))
	}
	p.known[id] = program
	return program.owned, nil
}

// name returns the name of a program that was looked at.
func (p *programs) name(id uint32) string { return p.known[id].name }

func (p *programs) look(id uint32) (bpfProgram, error) {
	prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if err != nil {
		return bpfProgram{}, err
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return bpfProgram{}, err
	}
	out := bpfProgram{name: info.Name, owned: isProgram(info.Name, p.own.Programs)}
	if out.owned {
		return out, nil
	}
	pinned, err := p.pinned()
	if err != nil {
		return bpfProgram{}, err
	}
	out.owned = pinned.programs[ebpf.ProgramID(id)]
	maps, _ := info.MapIDs()
	for _, m := range maps {
		out.owned = out.owned || pinned.maps[m]
	}
	return out, nil
}

// pinned lists the owned pins on the first call. With an error it returns the pins that it
// could read; later calls return those without an error.
func (p *programs) pinned() (*pinnedObjects, error) {
	if p.objects != nil {
		return p.objects, nil
	}
	var err error
	p.objects, err = p.pins.objects()
	return p.objects, err
}

// bpfLinks returns the bpf_links as they were when first asked for.
func (p *programs) bpfLinks() (*bpfattach.Links, error) {
	return p.links.get(func() (*bpfattach.Links, error) {
		all, err := bpfattach.AllLinks()
		if err != nil {
			return nil, fmt.Errorf("list bpf_links: %w", bpfattach.Hint(err))
		}
		return all, nil
	})
}
