// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import "context"

// For tests of a runtime's answers.
var (
	ParseStatus    = parseStatus
	ParseCNIConfig = parseCNIConfig
	ParseConfig    = parseConfig
	ErrNoRuntime   = errNoRuntime
	ErrSeveral     = errSeveral
	ErrUnproven    = errUnproven
)

type (
	RPCError = rpcError
	Status   = status
	Network  = network
	Runtime  = identity
)

func ParseSandboxes(answer []byte) ([]string, error) { return parseSandboxes(Endpoint{}, answer) }

func Find(ctx context.Context, hostProc string) (Endpoint, error) {
	return Endpoint{HostProc: hostProc}.found(ctx)
}

func (e Endpoint) Status(ctx context.Context) (Status, error) { return e.status(ctx) }

func (s status) Loads(conf []byte) (bool, error) { return s.loads(conf) }
