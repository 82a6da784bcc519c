// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/printable"
)

// File returns a gate that opens when path, which must be absolute, exists: a file, a
// directory or a socket, or a link to one.
func File(path string) Gate {
	return Gate{Name: "the file " + printable.Line(path), Where: []string{"mnt"}, Probe: func(context.Context) (string, error) {
		if !filepath.IsAbs(path) {
			return "", fmt.Errorf("%q is not an absolute path", path)
		}
		switch _, err := os.Stat(path); {
		case err == nil:
			return "", nil
		case errors.Is(err, fs.ErrNotExist):
			return "it does not exist", nil
		default:
			return err.Error(), nil
		}
	}}
}

// TCP returns a gate that opens when address, such as 10.96.0.1:443, accepts connections.
// Inside hostns.Do, its host must be an IP address: a name would be resolved outside.
func TCP(address string) Gate {
	return Gate{Name: "the TCP port " + printable.Line(address), Where: []string{"net"}, Probe: func(ctx context.Context) (string, error) {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return "", fmt.Errorf("%q: want HOST:PORT", address)
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		switch {
		case err == nil:
			_ = conn.Close() // nothing was sent
			return "", nil
		case ctx.Err() != nil:
			return context.Cause(ctx).Error(), nil
		}
		seen := strings.TrimPrefix(err.Error(), "dial tcp ")
		if errors.Is(err, syscall.ENETUNREACH) {
			seen += " (no route from this network namespace: in a container, hostns.Host.Proc says where the host's is)"
		}
		return seen, nil
	}}
}
