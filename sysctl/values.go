// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// values is what the kind of kernel values needs to know.
type values struct {
	Kernel
	wanted map[Key]ledger.State // what a step is about to set
	why    map[Key]string       // the reason, if it is not one of the step's settings
	reload *reload              // sets what is wanted, which this process may not; nil: none does
}

// kind returns the kind of kernel values.
func (v *values) kind() *ledger.Kind {
	return &ledger.Kind{
		Name: "sysctl", Rounds: true,
		Read: v.read, Write: v.write, Met: isSet, Describe: v.describe, Along: v.along, Lost: v.lost,
		Canonical: v.canonical, Owns: owns, Permission: v.permission, Place: v.place,
		EndsWithBoot: func(string) bool { return true },
	}
}

// state is that of a value, with blanks between its fields.
func state(value string) ledger.State {
	if value != unset {
		value = strings.Join(strings.Fields(value), " ")
	}
	return ledger.State{Type: "value", Value: value}
}

// inCoarser comes before a wanted value that is in the coarser unit, which Read reads as the
// second field.
const inCoarser = "* "

// wantedState is the state of a key whose value becomes as a setting says.
func wantedState(at, value string) ledger.State {
	to := state(strings.Join(printed(at, value), " "))
	if coarser(oneName(at)) == at {
		to.Value = inCoarser + to.Value
	}
	return to
}

func (v *values) read(_ context.Context, object string) (ledger.State, error) {
	_, index := cutIndex(object)
	at := pathOf(object)
	if now, err := v.indexOf(at); index > 0 && (err != nil || now != index) {
		return ledger.State{}, nil // the link has gone
	}
	value, err := v.lookOrUnset(at)
	if isMissing(err) {
		return ledger.State{}, nil
	}
	if coarse := coarser(at); coarse != "" && err == nil {
		if more, err := v.look(coarse); err == nil {
			value += " " + more
		}
	}
	if err != nil {
		return ledger.State{}, fmt.Errorf("read %s: %w", keyOf(at), err)
	}
	return state(value), nil
}

func (v *values) write(ctx context.Context, object string, to ledger.State) error {
	at, value := asWritten(object, to)
	if v.reload != nil && to.Equal(v.wanted[keyOf(pathOf(object))]) {
		return v.reload.once(ctx)
	}
	return hint(keyOf(at), pathless(v.files().WriteFile(at, []byte(value+"\n"))))
}

// asWritten returns the path at which a state is written, and the text: if it has two units,
// in the one in which it is wanted, and else in the finer.
func asWritten(object string, to ledger.State) (at, value string) {
	at = pathOf(object)
	coarse := coarser(at)
	inUnit, isCoarse := strings.CutPrefix(to.Value, inCoarser)
	switch {
	case coarse == "":
		return at, to.Value
	case isCoarse:
		return coarse, inUnit
	}
	fine, _, _ := strings.Cut(to.Value, " ")
	return at, fine
}

// isSet reports whether the kernel prints now after w was written.
func isSet(now ledger.State, w ledger.Want) bool {
	if inFine, isCoarse := strings.CutPrefix(w.To.Value, inCoarser); isCoarse && now.Value != w.To.Value {
		_, coarse, _ := strings.Cut(now.Value, " ")
		return coarse == inFine
	}
	return now.Type == w.To.Type && sameValue(pathOf(w.Object), now.Value, w.To.Value)
}

func (v *values) describe(object string, from, to ledger.State) string {
	at, value := asWritten(object, to)
	old := from.Value
	if one := pathOf(object); coarser(one) != "" {
		fine, coarse, _ := strings.Cut(old, " ")
		if old = fine; at != one {
			old = coarse
		}
	}
	if from.IsZero() {
		old = unset
	}
	return target{Setting: Setting{Key: keyOf(at), Value: value}, old: old, why: v.why[keyOf(at)]}.change()
}

// lost says why an original does not come back: the kernel takes some values once, or cannot
// unset them.
func (v *values) lost(object string, original ledger.State) string {
	at := pathOf(object)
	now, err := v.look(at)
	isFixed := err == nil && forGood(at, now) || forGood(at, v.wanted[keyOf(at)].Value)
	if original.Value == unset || isFixed && !forGood(at, original.Value) {
		return "the kernel does not allow changing it back before the next boot"
	}
	return ""
}

// forGood reports whether the kernel refuses to change the value again before the
// next boot (Documentation/admin-guide/sysctl/kernel.rst).
func forGood(at, value string) bool {
	once := []string{"kernel/unprivileged_bpf_disabled", "kernel/modules_disabled", "kernel/kexec_load_disabled"}
	return slices.Contains(once, at) && strings.TrimSpace(value) == "1"
}

// owns returns an error for an object that is no kernel value.
func owns(object string) error {
	name, _ := cutIndex(object)
	key, err := ParseKey(string(name))
	if err == nil && key != name {
		err = fmt.Errorf("%w: %q is not one key in its dotted spelling", errKey, object)
	}
	return err
}

// permission returns an error if neither this process nor systemd could write the value.
func (v *values) permission(_ context.Context, object string) error {
	at := pathOf(object)
	err := v.files().Writable(at)
	if v.reload != nil && denied(err) {
		return nil
	}
	return hint(keyOf(at), pathless(err))
}

// place marks the values of a network namespace, which may be a container's.
func (v *values) place(object string) (path, fstype string) {
	if v.Files != nil || !strings.HasPrefix(pathOf(object), "net/") {
		return "", ""
	}
	return "/proc/sys/net", ""
}

// denied reports whether this process may not write, though another may.
func denied(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
