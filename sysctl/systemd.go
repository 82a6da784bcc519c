// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"fmt"

	"github.com/slipway-dev/slipway/internal/code"
)

// Reloader has the files in sysctl.d applied by whichever service does that on a
// node. If there is none, both methods return an error that matches [ErrNoSystemd],
// and values are set directly.
type Reloader interface {
	// Reloading says in one line what Reload would do, such as "restart
	// systemd-sysctl.service". It changes nothing.
	Reloading(ctx context.Context) (string, error)
	// Reload has every file applied, and waits until that is done.
	Reload(ctx context.Context) error
}

// Systemd is a [Reloader] that restarts systemd-sysctl.service over D-Bus and
// waits for the job; a job that does not end with "done" is an error. A process of a
// unit that the service is ordered after would wait for itself: that is an error too,
// which matches [ErrNoSystemd], since the service applies the files afterwards.
//
// The service applies every file of sysctl.d, not only ours, and so overwrites what
// an administrator has set at run time. It acts on the machine's values and on
// those of systemd's own network namespace, whichever one the calling thread is in.
//
// The calling thread connects to the sockets, so their paths are resolved in its
// mount namespace. Each connection then has goroutines of its own, which only read
// from and write to it, and end when Reload returns. Reload needs root.
type Systemd struct {
	// Unit is the service. If empty, it is systemd-sysctl.service.
	Unit string
	// Root is the directory with run/systemd/private and run/dbus/system_bus_socket,
	// which are tried in this order. If empty, it is /.
	Root string
}

func (s Systemd) unit() string {
	if s.Unit == "" {
		return "systemd-sysctl.service"
	}
	return s.Unit
}

// Reloading says which service Reload would restart. It only looks whether there is
// a socket.
func (s Systemd) Reloading(context.Context) (string, error) {
	if _, err := s.sockets(); err != nil {
		return "", err
	}
	return "restart " + s.unit() + ", which applies every sysctl.d file", nil
}

// jobFailed is the result of a job of systemd's other than "done".
type jobFailed struct{ result, unit string }

func (e jobFailed) Error() string {
	return fmt.Sprintf("the job ended with %q (see journalctl -u %s)", e.result, e.unit)
}

func (jobFailed) Code() string { return code.SysctlReloadFailed }
