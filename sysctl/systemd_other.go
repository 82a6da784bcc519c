// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package sysctl

import (
	"context"
	"errors"
	"fmt"
)

func (s Systemd) sockets() ([]string, error) {
	return nil, fmt.Errorf("no systemd: %w", errors.ErrUnsupported)
}

// Reload returns an error that matches [errors.ErrUnsupported].
func (s Systemd) Reload(context.Context) error {
	_, err := s.sockets()
	return err
}
