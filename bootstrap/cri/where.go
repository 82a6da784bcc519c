// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/internal/failure"
)

// Bounds on the wait for a runtime's answer, which takes milliseconds, except while it
// starts.
const (
	startsWithin = 10 * time.Second
	startPause   = 100 * time.Millisecond
)

// CNI asks the runtime where it looks. It asks a runtime that is still starting again,
// for ten seconds at most. A runtime that does not report where it looks is an error.
func (e Endpoint) CNI(ctx context.Context) (CNI, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startsWithin, fmt.Errorf("no answer within %v", startsWithin))
	defer cancel()
	s, err := e.status(ctx)
	for starting(err) {
		if failure.Sleep(ctx, startPause) != nil {
			return CNI{}, err
		}
		s, err = e.status(ctx)
	}
	if err == nil && s.CNI.ConfDir == "" && len(s.CNI.PluginDirs) == 0 {
		err = errors.New("the container runtime does not report where it looks")
	}
	return s.CNI, err
}

// starting reports whether an error may pass with time, from a runtime that exists.
func starting(err error) bool {
	switch {
	case err == nil, errors.Is(err, errNoRuntime), errors.Is(err, errSeveral), errors.Is(err, fs.ErrPermission),
		errors.Is(err, errors.ErrUnsupported): // it has no CRI
		return false
	case errors.As(err, new(*rpcError)):
		return true
	}
	isAway := errors.Is(err, errUnproven) && errors.Is(err, fs.ErrNotExist) // a named socket, made anew at its start
	return isAway || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EAGAIN)
}
