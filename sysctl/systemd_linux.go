// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// sockets lists the sockets that exist, systemd's own first, since it needs no bus.
func (s Systemd) sockets() ([]string, error) {
	root := s.Root
	if root == "" {
		root = "/"
	}
	var found []string
	for _, at := range []string{s.private(), s.bus()} {
		info, err := os.Stat(filepath.Join(root, at))
		if err == nil && info.Mode().Type() == fs.ModeSocket {
			found = append(found, filepath.Join(root, at))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: neither %s nor %s below %s is a socket", ErrNoSystemd, s.private(), s.bus(), root)
	}
	return found, nil
}

func (Systemd) private() string { return "run/systemd/private" }
func (Systemd) bus() string     { return "run/dbus/system_bus_socket" }

// Reload restarts the unit, and waits until the job or ctx is done.
func (s Systemd) Reload(ctx context.Context) error {
	sockets, err := s.sockets()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	var errs []error
	for _, socket := range sockets {
		manager, err := connect(ctx, socket, filepath.Base(socket) != filepath.Base(s.private()))
		if err != nil {
			errs = append(errs, fmt.Errorf("connect to %s: %w", socket, remedy.File(errors.Join(err, ctx.Err()))))
			continue
		}
		return s.restart(ctx, manager)
	}
	return errors.Join(errs...)
}

// manager is a connection to systemd.
type manager struct {
	*systemd.Conn
	closed []<-chan struct{} // of the sockets, one for calls and one for signals
}

// connect does what go-systemd does for each of its two ways to connect, but takes
// the path. Dial connects on the calling thread. (Over a stream of our own, D-Bus's
// decoder would panic if it were closed within a message.)
func connect(ctx context.Context, socket string, isBus bool) (*manager, error) {
	m := &manager{}
	dial := func() (*dbus.Conn, error) {
		conn, err := dbus.Dial("unix:path="+dbus.EscapeBusAddressValue(socket), dbus.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		err = conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))})
		if err == nil && isBus {
			err = conn.Hello()
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
		m.closed = append(m.closed, conn.Context().Done())
		return conn, nil
	}
	var err error
	m.Conn, err = systemd.NewConnection(dial)
	return m, errors.Join(err, ctx.Err())
}

func (s Systemd) restart(ctx context.Context, m *manager) error {
	defer m.Close()
	ended := make(chan string, 1)
	if _, err := m.RestartUnitContext(ctx, s.unit(), "replace", ended); err != nil {
		if ctx.Err() != nil { // it closes the connections
			err = ctx.Err()
		}
		return fmt.Errorf("restart %s: %w", s.unit(), noManager(err))
	}
	select {
	case result := <-ended:
		return s.outcome(result)
	case <-m.closed[0]:
	case <-m.closed[1]:
	}
	select { // the last thing that was said
	case result := <-ended:
		return s.outcome(result)
	default:
	}
	if err := ctx.Err(); err != nil { // it closes the connections
		return fmt.Errorf("restart %s: wait for the job: %w", s.unit(), err)
	}
	return fmt.Errorf("restart %s: systemd closed the connection before the job ended", s.unit())
}

func (s Systemd) outcome(result string) error {
	if result != "done" {
		return fmt.Errorf("restart %s: the job ended with %q (see journalctl -u %s)", s.unit(), result, s.unit())
	}
	return nil
}

// noManager returns err, marked if it says that there is a bus but no systemd on
// it.
func noManager(err error) error {
	var answer dbus.Error
	if errors.As(err, &answer) {
		switch answer.Name {
		case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner":
			return fmt.Errorf("%w on the bus: %w", ErrNoSystemd, err)
		}
	}
	return err
}
