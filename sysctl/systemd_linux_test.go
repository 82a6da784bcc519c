// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/sysctl"
)

const service = "systemd-sysctl.service"

// systemdd answers the calls of one restart on a socket, like systemd.
type systemdd struct {
	root    string
	isBus   bool
	result  string                    // how the job ends; empty: the connection is closed instead
	refusal string                    // the name of the error that RestartUnit gets
	hold    chan struct{}             // the job ends when it is closed
	own     string                    // the unit of the caller; empty: it has none
	known   map[string]map[string]any // properties of units

	mu    sync.Mutex
	conns []net.Conn
	units []string
	open  sync.WaitGroup
}

func (d *systemdd) start(t *testing.T) *sysctl.Systemd {
	t.Helper()
	at := "run/systemd/private"
	if d.isBus {
		at = "run/dbus/system_bus_socket"
	}
	if d.root == "" {
		var err error
		d.root, err = os.MkdirTemp("", "a;b,c=%") // a socket's path has to be short
		require.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(d.root) })
	}
	path := filepath.Join(d.root, at)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() {
		listener.Close()
		closed := make(chan struct{})
		go func() { defer close(closed); d.open.Wait() }()
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Error("a connection is left open, and the goroutines of its other end")
		}
	})
	d.open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			d.open.Go(func() { d.serve(conn) })
		}
	})
	return sysctl.SystemdAt(d.root, service)
}

func (d *systemdd) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(strings.TrimPrefix(line, "\x00"))
		switch {
		case words[0] == "BEGIN":
			d.mu.Lock()
			d.conns = append(d.conns, conn)
			d.mu.Unlock()
			d.calls(conn, in)
			return
		case words[0] == "DATA":
			io.WriteString(conn, "OK 1234deadbeef\r\n")
		case words[0] == "AUTH" && len(words) == 1:
			io.WriteString(conn, "REJECTED EXTERNAL\r\n")
		case words[0] == "AUTH":
			io.WriteString(conn, "DATA\r\n")
		default:
			io.WriteString(conn, "ERROR\r\n")
		}
	}
}

func (d *systemdd) calls(conn net.Conn, in io.Reader) {
	defer func() { _ = recover() }() // the decoder panics at an end within a message
	for {
		call, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		switch call.Headers[dbus.FieldMember].Value() {
		case "Hello":
			reply(conn, call, dbus.TypeMethodReply, nil, ":1.7")
		case "AddMatch": // on the bus; systemd itself does not know it
			reply(conn, call, dbus.TypeMethodReply, nil)
		case "RestartUnit":
			d.restart(conn, call)
		case "GetUnitByPID":
			if d.own == "" || call.Body[0] != uint32(0) {
				reply(conn, call, dbus.TypeError, errorName("org.freedesktop.systemd1.NoUnitForPID"), "no")
				continue
			}
			reply(conn, call, dbus.TypeMethodReply, nil, unitPath(d.own))
		case "Get":
			d.property(conn, call)
		}
	}
}

func (d *systemdd) restart(conn net.Conn, call *dbus.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.units = append(d.units, call.Body[0].(string)+" "+call.Body[1].(string))
	if d.refusal != "" {
		reply(conn, call, dbus.TypeError, errorName(d.refusal), "no")
		return
	}
	job := dbus.ObjectPath("/org/freedesktop/systemd1/job/42")
	reply(conn, call, dbus.TypeMethodReply, nil, job)
	conns := d.conns
	d.open.Go(func() {
		if d.hold != nil {
			<-d.hold
		}
		for _, c := range conns {
			if d.result == "" {
				c.Close()
				continue
			}
			reply(c, call, dbus.TypeSignal, map[dbus.HeaderField]dbus.Variant{
				dbus.FieldPath:      dbus.MakeVariant(dbus.ObjectPath("/org/freedesktop/systemd1")),
				dbus.FieldInterface: dbus.MakeVariant("org.freedesktop.systemd1.Manager"),
				dbus.FieldMember:    dbus.MakeVariant("JobRemoved"),
			}, uint32(42), job, call.Body[0], d.result)
		}
	})
}

func (d *systemdd) property(conn net.Conn, call *dbus.Message) {
	for unit, properties := range d.known {
		if value, ok := properties[call.Body[1].(string)]; ok && call.Headers[dbus.FieldPath].Value() == unitPath(unit) {
			reply(conn, call, dbus.TypeMethodReply, nil, dbus.MakeVariant(value))
			return
		}
	}
	reply(conn, call, dbus.TypeError, errorName("org.freedesktop.DBus.Error.UnknownProperty"), "no")
}

func errorName(name string) map[dbus.HeaderField]dbus.Variant {
	return map[dbus.HeaderField]dbus.Variant{dbus.FieldErrorName: dbus.MakeVariant(name)}
}

func unitPath(unit string) dbus.ObjectPath {
	return dbus.ObjectPath("/org/freedesktop/systemd1/unit/" + systemd.PathBusEscape(unit))
}

func (d *systemdd) restarted() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.units)
}

func reply(w io.Writer, call *dbus.Message, kind dbus.Type, headers map[dbus.HeaderField]dbus.Variant, body ...any) {
	if headers == nil {
		headers = map[dbus.HeaderField]dbus.Variant{}
	}
	if kind != dbus.TypeSignal {
		headers[dbus.FieldReplySerial] = dbus.MakeVariant(call.Serial())
	}
	headers[dbus.FieldSender] = dbus.MakeVariant("org.freedesktop.systemd1")
	if len(body) > 0 {
		headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	var raw bytes.Buffer
	if err := (&dbus.Message{Type: kind, Headers: headers, Body: body}).EncodeTo(&raw, binary.LittleEndian); err != nil {
		panic(err)
	}
	binary.LittleEndian.PutUint32(raw.Bytes()[8:], 7) // the serial, which has no setter
	w.Write(raw.Bytes())
}

func TestSYS4_SystemdRestartsTheUnitAndWaitsForTheJob(t *testing.T) {
	for _, isBus := range []bool{false, true} {
		d := &systemdd{isBus: isBus, result: "done"}
		s := d.start(t)
		how, err := s.Reloading(t.Context())
		require.NoError(t, err)
		require.Contains(t, how, "restart systemd-sysctl.service")
		ctx := context.WithoutCancel(t.Context()) // whose end would close a connection that is left open
		require.NoError(t, s.Reload(ctx))
		s = sysctl.SystemdAt(d.root, "other.service")
		require.NoError(t, s.Reload(ctx))
		require.Equal(t, []string{"systemd-sysctl.service replace", "other.service replace"}, d.restarted())
	}
}

func TestSYS4_SystemdErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		daemon      *systemdd
		text        string
		unsupported bool
	}{
		"failed job":         {&systemdd{result: "failed"}, `the job ended with "failed" (see journalctl -u systemd-sysctl.service)`, false},
		"superseded job":     {&systemdd{result: "canceled"}, `ended with "canceled"`, false},
		"no such unit":       {&systemdd{refusal: "org.freedesktop.systemd1.NoSuchUnit"}, "restart systemd-sysctl.service", false},
		"systemd went away":  {&systemdd{}, "closed the connection", false},
		"bus without anyone": {&systemdd{isBus: true, refusal: "org.freedesktop.DBus.Error.ServiceUnknown"}, "no systemd on the bus", true},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.daemon.start(t).Reload(t.Context())
			require.ErrorContains(t, err, tc.text)
			require.Equal(t, tc.unsupported, errors.Is(err, errors.ErrUnsupported))
		})
	}
}

// A unit ordered before the service, directly or through others that are about to
// start, does not wait for its own end.
func TestSYS4_AUnitBeforeTheServiceDoesNotWaitForItself(t *testing.T) {
	type job struct {
		ID   uint32
		Path dbus.ObjectPath
	}
	starting, none := job{5, "/org/freedesktop/systemd1/job/5"}, job{0, "/"}
	for name, tc := range map[string]struct {
		own, target job
		after       []string
		waits       bool
	}{
		"before it":                     {starting, none, []string{"-.mount", "agent.service"}, true},
		"before a unit before it":       {starting, starting, []string{"early.target"}, true},
		"before one that has started":   {starting, none, []string{"early.target"}, false},
		"before it, and started":        {none, none, []string{"agent.service"}, false},
		"neither before it nor after":   {starting, none, []string{"-.mount"}, false},
		"systemd does not answer":       {starting, none, nil, false},
		"before one that waits for one": {starting, starting, []string{"-.mount", "early.target", "early.target"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &systemdd{result: "done", own: "agent.service", known: map[string]map[string]any{
				"agent.service":          {"Id": "agent.service", "Job": tc.own, "After": []string{}},
				"early.target":           {"Job": tc.target, "After": []string{"early.target", "agent.service"}},
				"systemd-sysctl.service": {"Job": none},
			}}
			if tc.after != nil {
				d.known["systemd-sysctl.service"]["After"] = tc.after
			}
			s := d.start(t)
			err := s.Reload(t.Context())
			if !tc.waits {
				require.NoError(t, err)
				require.Len(t, d.restarted(), 1)
				return
			}
			require.EqualError(t, err, "restart systemd-sysctl.service: no systemd: it starts after agent.service, to which this process belongs")
			require.ErrorIs(t, err, sysctl.ErrNoSystemd)
			require.Empty(t, d.restarted())

			n := newNode(t)
			n.PutValue(bad, "2")
			require.NoError(t, n.dropInWith(s).Apply(t.Context()))
			require.Equal(t, "0", n.Values()[bad], "it is set directly")
		})
	}
}

func TestSYS4_WaitingForTheJobEndsWithTheContext(t *testing.T) {
	d := &systemdd{result: "done", hold: make(chan struct{})}
	s := d.start(t)
	t.Cleanup(func() { close(d.hold) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // as soon as the job exists
		for {
			if len(d.restarted()) > 0 {
				cancel()
				return
			}
			runtime.Gosched()
		}
	}()
	err := s.Reload(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "restart systemd-sysctl.service")
	require.ErrorIs(t, s.Reload(ctx), context.Canceled, "before it connects")
}

func TestSYS4_TheBusIsTriedWhereThePrivateSocketIsDead(t *testing.T) {
	d := &systemdd{isBus: true, result: "done"}
	s := d.start(t)
	dead := filepath.Join(d.root, "run/systemd/private")
	require.NoError(t, os.MkdirAll(filepath.Dir(dead), 0o755))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead})
	require.NoError(t, err)
	listener.SetUnlinkOnClose(false)
	require.NoError(t, listener.Close())
	require.NoError(t, s.Reload(t.Context()))

	root := t.TempDir()
	both := sysctl.SystemdAt(root, service)
	require.ErrorIs(t, both.Reload(t.Context()), errors.ErrUnsupported)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "run/systemd/private"), 0o755)) // no socket
	_, err = both.Reloading(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "run/systemd/private")
}
