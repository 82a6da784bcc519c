// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"fmt"
	"slices"
	"strings"
)

// nameBytes is how much of a program's name the kernel stores (BPF_OBJ_NAME_LEN).
const nameBytes = 15

// linkMark stands for a link's name in the name of a filter.
const linkMark = "{link}"

// validName refuses a name that nearly anything could have.
func validName(name string) error {
	if strings.Trim(strings.ReplaceAll(name, linkMark, ""), "-_. ") == "" {
		return fmt.Errorf("cleanup: ownership: %q is not the name of a program or a filter", name)
	}
	return nil
}

// isProgram reports whether a program's name, as the kernel reports it, is one of the
// full names.
func isProgram(name string, full []string) bool {
	return name != "" && slices.ContainsFunc(full, func(f string) bool { return name == f[:min(len(f), nameBytes)] })
}

// isFilter reports whether a filter's name is one of names on the given link; a
// block of filters that several links share has no link.
func isFilter(name, link string, names []string) bool {
	return name != "" && slices.ContainsFunc(names, func(n string) bool {
		return name == strings.ReplaceAll(n, linkMark, link) && (link != "" || !strings.Contains(n, linkMark))
	})
}
