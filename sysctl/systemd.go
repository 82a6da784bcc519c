// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import "context"

// Reloader has the files in sysctl.d applied by whoever does that on a node.
// Both errors may match [ErrNoSystemd]: there is nobody, and values are set
// directly.
type Reloader interface {
	// Reloading says in one line what Reload would do, such as "restart
	// systemd-sysctl.service". It changes nothing.
	Reloading(ctx context.Context) (string, error)
	// Reload has every file applied and waits for the end.
	Reload(ctx context.Context) error
}

// Systemd is a [Reloader] that restarts systemd-sysctl.service over D-Bus and
// waits for the job; a job that does not end with "done" is an error.
//
// It applies every file of sysctl.d, not only ours, and so takes back what an
// administrator set at run time. It acts on the machine's values and those of
// systemd's own network namespace, whichever the calling thread is in.
//
// The sockets are connected by the calling thread and so found in its mount
// namespace; the connections then have goroutines of their own, which do
// nothing but read and write them and end when Reload returns. It needs root.
type Systemd struct {
	// Unit is the service. Zero: systemd-sysctl.service.
	Unit string
	// Root is where run/systemd/private and, tried after it,
	// run/dbus/system_bus_socket are. Zero: /.
	Root string
}

func (s Systemd) unit() string {
	if s.Unit == "" {
		return "systemd-sysctl.service"
	}
	return s.Unit
}

// Reloading looks whether there is a socket.
func (s Systemd) Reloading(context.Context) (string, error) {
	if _, err := s.sockets(); err != nil {
		return "", err
	}
	return "restart " + s.unit() + ", which applies every sysctl.d file", nil
}
