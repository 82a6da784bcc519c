// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Mark is a packet mark and the bits of it that are compared.
type Mark struct {
	Value uint32 `json:"value"`
	Mask  uint32 `json:"mask"`
}

// text has value and mask as ip-rule(8) writes them, "0x200/0xf00".
func (m Mark) text() string { return fmt.Sprintf("0x%x/0x%x", m.Value, m.Mask) }

// XFRMRule describes IPsec policies and states by their mark. Every field must be set.
type XFRMRule struct {
	// Mark is the required mark, in the bits of its mask.
	Mark Mark `json:"mark"`

	// Masks are the masks that the agent writes; each includes that of Mark. A mark with
	// another mask is not owned, whatever its value.
	Masks []uint32 `json:"masks"`
}

func (r XFRMRule) matches(m Mark) bool {
	return slices.Contains(r.Masks, m.Mask) && m.Value&r.Mark.Mask == r.Mark.Value
}

func (r XFRMRule) validate() error {
	if err := r.Mark.validate(); err != nil {
		return fmt.Errorf("cleanup: ownership: xfrm: %w", err)
	}
	if len(r.Masks) == 0 {
		return fmt.Errorf("cleanup: ownership: xfrm: mark %s: want the masks that are written", r.Mark.text())
	}
	for _, mask := range r.Masks {
		if mask&r.Mark.Mask != r.Mark.Mask {
			return fmt.Errorf("cleanup: ownership: xfrm: mark %s: mask 0x%x does not include that of the mark", r.Mark.text(), mask)
		}
	}
	return nil
}

func (m Mark) validate() error {
	switch {
	case m.Mask == 0 || m.Value == 0:
		return fmt.Errorf("mark %s: want a value and a mask other than 0: it would match unmarked packets", m.text())
	case m.Value&^m.Mask != 0:
		return fmt.Errorf("mark %s: the value has bits outside of the mask", m.text())
	}
	return nil
}

// validPattern refuses patterns that could match any name.
func validPattern(what, pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("cleanup: ownership: %s %q: %w", what, pattern, err)
	}
	if pattern == "" || strings.Contains(pattern, "/") || strings.ContainsAny(pattern[:1], `*?[\.`) {
		return fmt.Errorf("cleanup: ownership: %s %q: want a name, or a pattern that starts with a part of one", what, pattern)
	}
	return nil
}

func (o *owned) ownsNetNS(name string) bool { return matches(o.NetNS, name) }

func (o *owned) ownsComment(comment string) bool { return matches(o.RuleComments, comment) }

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		match, _ := path.Match(pattern, name)
		return match
	})
}

func (o *owned) ownsXFRM(mark Mark) bool {
	return slices.ContainsFunc(o.XFRM, func(r XFRMRule) bool { return r.matches(mark) })
}
