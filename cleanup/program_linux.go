// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// bpfProgram is what is known of a loaded program.
type bpfProgram struct {
	name  string
	owned bool
}

// ownsProgram reports whether a program is owned: by its name, by a map that
// it uses, or because it is pinned. A program that is gone is nobody's.
func (s *session) ownsProgram(id uint32) (bool, error) {
	if id == 0 || !s.own.ownsPrograms() {
		return false, nil
	}
	if known, ok := s.programs[id]; ok {
		return known.owned, nil
	}
	program, err := s.lookAtProgram(id)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at BPF program %d: %w", id, bpfHint(err))
	}
	s.programs[id] = program
	return program.owned, nil
}

func bpfHint(err error) error { return remedy.Capabilities(err, "", remedy.SysAdmin) }

func (s *session) lookAtProgram(id uint32) (bpfProgram, error) {
	prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if err != nil {
		return bpfProgram{}, err
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return bpfProgram{}, err
	}
	out := bpfProgram{name: info.Name, owned: isProgram(info.Name, s.own.Programs)}
	if out.owned {
		return out, nil
	}
	pinned, err := s.pinnedObjects()
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
