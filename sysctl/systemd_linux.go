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

	"github.com/slipway-dev/slipway/internal/code"
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
	calls  *dbus.Conn
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
		if m.calls == nil {
			m.calls = conn
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
	if own := m.waitsFor(ctx, s.unit()); own != "" {
		return fmt.Errorf("restart %s: %w", s.unit(), startsLater{own})
	}
	ended := make(chan string, 1)
	if _, err := m.RestartUnitContext(ctx, s.unit(), "replace", ended); err != nil {
		if ctx.Err() != nil { // it closes the connections
			err = ctx.Err()
		}
		return fmt.Errorf("restart %s: %w", s.unit(), noManager(err))
	}
	select {
	case result := <-ended:
		return s.outcome(ctx, m, result)
	case <-m.closed[0]:
	case <-m.closed[1]:
	}
	select { // the last thing that was said
	case result := <-ended:
		return s.outcome(ctx, m, result)
	default:
	}
	if err := ctx.Err(); err != nil { // it closes the connections
		return fmt.Errorf("restart %s: wait for the job: %w", s.unit(), err)
	}
	return fmt.Errorf("restart %s: systemd closed the connection before the job ended", s.unit())
}

func (s Systemd) outcome(ctx context.Context, m *manager, result string) error {
	switch {
	case result == "done":
		return nil
	case result == "failed" && m.limited(ctx, s.unit()):
		return code.Errorf(code.SysctlReloadFailed, "restart %s: it was started too often in a short time (StartLimitBurst=): run systemctl reset-failed %s, or try again later",
			s.unit(), s.unit())
	}
	return fmt.Errorf("restart %s: %w", s.unit(), jobFailed{result, s.unit()})
}

// limited reports whether the unit failed without having been started.
func (m *manager) limited(ctx context.Context, unit string) bool {
	p, err := m.GetServicePropertyContext(ctx, unit, "Result")
	return err == nil && p.Value.Value() == "start-limit-hit"
}

// startsLater says that the job would wait for a unit that waits for this process,
// and so for itself. The service applies the files when it starts.
type startsLater struct{ own string }

func (e startsLater) Error() string {
	return fmt.Sprintf("it starts after %s, of which this process is a part", e.own)
}

func (startsLater) Is(target error) bool { return target == ErrNoSystemd }

// waitsFor returns the unit of this process if that is about to start, and a start
// of unit waits for it, be it by way of others. What systemd does not tell is taken
// for a no.
func (m *manager) waitsFor(ctx context.Context, unit string) string {
	own, err := m.ownUnit(ctx)
	if err != nil || !m.hasJob(ctx, own) {
		return ""
	}
	seen, todo := map[string]bool{}, []string{unit}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		after, err := m.GetUnitPropertyContext(ctx, next, "After")
		if err != nil {
			continue
		}
		names, _ := after.Value.Value().([]string)
		for _, name := range names {
			if name == own {
				return own
			}
			if !seen[name] && m.hasJob(ctx, name) {
				todo = append(todo, name)
			}
			seen[name] = true
		}
	}
	return ""
}

// ownUnit names the unit that this process is a part of.
func (m *manager) ownUnit(ctx context.Context) (name string, err error) {
	const sender = uint32(0)
	var path dbus.ObjectPath
	object := m.calls.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
	if err := object.CallWithContext(ctx, "org.freedesktop.systemd1.Manager.GetUnitByPID", 0, sender).Store(&path); err != nil {
		return "", err
	}
	var id dbus.Variant
	object = m.calls.Object("org.freedesktop.systemd1", path)
	if err := object.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, "org.freedesktop.systemd1.Unit", "Id").Store(&id); err != nil {
		return "", err
	}
	return name, id.Store(&name)
}

func (m *manager) hasJob(ctx context.Context, unit string) bool {
	p, err := m.GetUnitPropertyContext(ctx, unit, "Job")
	if err != nil {
		return false
	}
	var job struct {
		ID   uint32
		Path dbus.ObjectPath
	}
	return p.Value.Store(&job) == nil && job.ID != 0
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
