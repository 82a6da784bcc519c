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
)

// How long a runtime has to say where it looks. That takes milliseconds, but for one
// that is just starting.
const (
	startsWithin = 10 * time.Second
	startPause   = 100 * time.Millisecond
)

// CNI asks the runtime where it looks. One that is there but just starting is asked
// again, for ten seconds at most. It is an error if the runtime does not say.
func (e Endpoint) CNI(ctx context.Context) (CNI, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startsWithin, fmt.Errorf("no answer within %v", startsWithin))
	defer cancel()
	s, err := e.Status(ctx)
	for starting(err) {
		select {
		case <-ctx.Done():
			return CNI{}, err
		case <-time.After(startPause):
		}
		s, err = e.Status(ctx)
	}
	if err == nil && s.CNI.ConfDir == "" && len(s.CNI.PluginDirs) == 0 {
		err = errors.New("the container runtime does not say where it looks")
	}
	return s.CNI, err
}

// starting reports whether an error may pass: of a runtime that is there.
func starting(err error) bool {
	switch {
	case err == nil, errors.Is(err, ErrNoRuntime), errors.Is(err, ErrSeveral), errors.Is(err, fs.ErrPermission),
		errors.Is(err, errors.ErrUnsupported): // it has no CRI
		return false
	case errors.As(err, new(*RPCError)):
		return true
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
