// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfmap

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// Pinned is the state in which each map is pinned in a directory, as specified. It is a
// ledger.Wanter. If a map cannot be made or replaced, the others still are.
type Pinned struct {
	// Dir is an absolute path on a BPF file system, such as /sys/fs/bpf/agent. If only
	// its last element is missing, it is made with mode 0700.
	Dir string

	// Maps lists the maps to pin, each under its Name. They must be the agent's own,
	// since a map that does not match is replaced. Their Pinning is ignored.
	Maps []*ebpf.MapSpec
}

// Wants lists the directory if it is missing, and the maps.
func (p Pinned) Wants(ctx context.Context) (ledger.Wants, error) {
	if err := errors.Join(p.validate(), ctx.Err()); err != nil {
		return ledger.Wants{}, err
	}
	p.Dir = filepath.Clean(p.Dir)
	list := p.dirWants()
	for _, spec := range p.Maps {
		list = append(list, p.mapWants(ctx, spec)...)
	}
	return ledger.Wants{List: list, Kinds: Kinds()}, nil
}

// Kinds returns the kinds of pinned maps and of the directories that were made for them.
func Kinds() []*ledger.Kind { return []*ledger.Kind{pinKind(nil), dirKind()} }

// typeMap is the type of a map's state. Its Value is the map's shape, and its Identity the
// map's id, which no other map has until the next boot.
const typeMap = "map"

// pinKind is the kind of pinned maps. A spec makes them; without one, they can be removed.
func pinKind(spec *ebpf.MapSpec) *ledger.Kind {
	k := &ledger.Kind{
		Name: "bpfmap", Space: "path",
		Read: readPin, Write: writePin, Describe: describePin, Met: isShaped, Same: isSameMap,
		Parts: partsOf, Canonical: ledger.Dir().Canonical, Owns: owns, EndsWithBoot: endsWithBoot,
		Lost: func(_ string, original ledger.State) string {
			if original.IsZero() {
				return ""
			}
			return "the map that was there is gone"
		},
	}
	k.Stage = func(_ context.Context, path string, _ ledger.State) (*ledger.Staged, error) { return stage(path, spec) }
	return k
}

// isShaped reports whether the map is like the wanted one.
func isShaped(now ledger.State, w ledger.Want) bool { return now.Equal(w.To) }

// partsOf lists what a replacement has left that was cut short.
func partsOf(_ context.Context, path string) ([]string, error) { return []string{leftOf(path)}, nil }

func leftOf(path string) string { return filepath.Join(filepath.Dir(path), next+filepath.Base(path)) }

func isSameMap(a, b ledger.State) bool { return a.Equal(b) && a.Identity == b.Identity }

func describePin(path string, from, to ledger.State) string {
	switch {
	case to.IsZero() && strings.HasPrefix(filepath.Base(path), next):
		return "remove " + path + ", left by a replacement that was cut short"
	case to.IsZero():
		return "remove the pinned map " + path
	case from.IsZero():
		return "create the map " + path
	}
	return fmt.Sprintf("replace the map %s with an empty one: it is %s, and must be %s", path, from.Value, to.Value)
}

// dirKind is [ledger.Dir] for directories on a BPF file system, which may be below /sys.
func dirKind() *ledger.Kind {
	k := ledger.Dir()
	k.Name, k.Owns, k.EndsWithBoot = "bpfmap-dir", owns, endsWithBoot
	return k
}

// dirWants wants the directory, if only that is missing.
func (p Pinned) dirWants() []ledger.Want {
	wants, err := ledger.DirWants(p.Dir, dirMode)
	if err != nil || len(wants) != 1 { // the maps' Ready says so
		return nil
	}
	wants[0].Kind, wants[0].Ready = dirKind(), p.ready
	return wants
}

const dirMode = 0o700

// owns returns an error for a path that no directory or map can have been made at.
func owns(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return fmt.Errorf("%q is not an absolute path below /", path)
	}
	return nil
}

// endsWithBoot: a pin does not survive a reboot.
func endsWithBoot(string) bool { return true }

// validate returns an error if the directory or the maps of p are invalid, whatever is on
// the node.
func (p Pinned) validate() error {
	var errs []error
	if !filepath.IsAbs(p.Dir) || filepath.Clean(p.Dir) == "/" {
		errs = append(errs, fmt.Errorf("%q is not the absolute path of a directory", p.Dir))
	}
	if len(p.Maps) == 0 {
		errs = append(errs, errors.New("no maps given"))
	}
	names := map[string]bool{}
	for i, spec := range p.Maps {
		switch {
		case spec == nil:
			errs = append(errs, fmt.Errorf("map %d of %d is nil", i+1, len(p.Maps)))
		case spec.Name == "" || len(spec.Name) > maxName || strings.ContainsAny(spec.Name, "./\x00"): // bpffs reserves dots
			errs = append(errs, fmt.Errorf("map %q: want a name of at most %d bytes without dots and slashes", spec.Name, maxName))
		case names[spec.Name]:
			errs = append(errs, fmt.Errorf("map %q is given twice", spec.Name))
		default:
			names[spec.Name] = true
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("pin maps: %w", err)
	}
	return nil
}

// next starts the name under which a map waits to replace another: a bpffs has no
// reserved names.
const next = "slipway_next_"

const maxName = 255 - len(next)
