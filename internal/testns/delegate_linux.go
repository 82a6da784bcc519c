// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// delegate gives the cgroups below the node's own every controller that its own has, and
// moves pid 1 into one of them.
func (c *cgroup) delegate(pid1 int) error {
	text, err := os.ReadFile(filepath.Join(c.path, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("delegate controllers: %w", err)
	}
	controllers := strings.Fields(string(text))
	if len(controllers) == 0 {
		return fmt.Errorf("delegate controllers: %s has none for cgroups below it (cgroup.subtree_control; systemd lists there what it uses): %w",
			filepath.Dir(c.path), errors.ErrUnsupported)
	}
	path := filepath.Join(c.path, "init")
	if err := os.Mkdir(path, 0o755); err != nil {
		return fmt.Errorf("delegate controllers: %w", err)
	}
	if c.init, err = os.Open(path); err != nil {
		return fmt.Errorf("delegate controllers: %w", err)
	}
	for _, w := range []struct{ file, value string }{
		{filepath.Join(path, "cgroup.procs"), strconv.Itoa(pid1)},
		{filepath.Join(c.path, "cgroup.subtree_control"), "+" + strings.Join(controllers, " +")},
	} {
		if err := os.WriteFile(w.file, []byte(w.value), 0); err != nil {
			return fmt.Errorf("delegate controllers: write %q: %w", w.value, err)
		}
	}
	return nil
}
