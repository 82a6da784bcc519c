// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// wire counts the bytes between clients and the API server.
type wire struct {
	url                   string
	up, down, connections atomic.Int64

	mu   sync.Mutex
	cut  bool
	ends []net.Conn
}

// end cuts the wire, for good.
func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, c := range w.ends {
		c.Close()
	}
	w.ends = nil
}

// keep records the ends of a connection, and returns whether the wire is connected.
func (w *wire) keep(ends ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, ends...)
	return !w.cut
}

func newWire(t testing.TB, s *realkube.Server) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wire{url: "https://" + listener.Addr().String()}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			w.connections.Add(1)
			upstream, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "https://"))
			if err != nil {
				client.Close()
				continue
			}
			if !w.keep(client, upstream) {
				client.Close()
				upstream.Close()
				continue
			}
			open.Go(func() { pass(client, upstream, &w.up) })
			open.Go(func() { pass(upstream, client, &w.down) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		w.end()
		open.Wait()
	})
	return w
}

// pass counts bytes before passing them on, so that a received answer has been counted.
func pass(from, to net.Conn, count *atomic.Int64) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		count.Add(int64(n))
		if _, werr := to.Write(buf[:n]); werr != nil || err == io.EOF || err != nil {
			return
		}
	}
}
