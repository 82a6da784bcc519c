// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package probe_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/probe"
)

func ask(p *probe.Probe, method, path, header string) (int, string) {
	r := httptest.NewRequest(method, path, nil)
	if header != "" {
		r.Header.Set("Brief", header)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func run(t *testing.T, failure error) (*bootstrap.Report, error) {
	t.Helper()
	step := bootstrap.Step{Name: "bpffs", Action: bootstrap.Func("mount it", func(context.Context) (bool, error) { return failure == nil, failure }, nil)}
	return (&bootstrap.Plan{Steps: []bootstrap.Step{step}}).Apply(t.Context())
}

func TestRDY2_TheAnswers(t *testing.T) {
	p := &probe.Probe{}
	status, body := ask(p, "GET", "/healthz", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "no run of the plan has ended yet\n", body)

	p.Done(run(t, errors.New("no\x1b[2J\nmount")))
	status, body = ask(p, "GET", "/healthz", "true")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "step bpffs: check: no\\x1b[2J\\nmount\n", body)
	status, body = ask(p, "GET", "/healthz", "false")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "failed")
	require.NotContains(t, body, "\x1b")

	p.Done(run(t, nil))
	status, body = ask(p, "GET", "/healthz", "true")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "ok\n", body)
	status, body = ask(p, "GET", "/healthz", "")
	require.Equal(t, http.StatusOK, status)
	require.Regexp(t, `(?s)^ok\n.*bpffs.*unchanged`, body)

	for path, want := range map[string]int{"/": http.StatusNotFound, "/healthz/x": http.StatusNotFound, "/metrics": http.StatusNotFound} {
		status, _ = ask(p, "GET", path, "")
		require.Equal(t, want, status, path)
	}
	status, _ = ask(p, "POST", "/healthz", "")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	status, _ = ask(p, "HEAD", "/healthz", "")
	require.Equal(t, http.StatusOK, status)
}

func TestRDY2_WhatElseHasToBeWell(t *testing.T) {
	datapath := errors.New("the datapath is not loaded")
	p := &probe.Probe{Check: func(context.Context) error { return datapath }}
	p.Done(run(t, nil))
	status, body := ask(p, "GET", "/healthz", "true")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "the datapath is not loaded\n", body)
	datapath = nil
	status, _ = ask(p, "GET", "/healthz", "true")
	require.Equal(t, http.StatusOK, status)
}

func TestRDY2_AnAgentThatHangsIsNotHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probe.Probe{MaxAge: time.Minute}
		p.Done(run(t, nil))
		time.Sleep(time.Minute)
		said := func() string { _, body := ask(p, "GET", "/healthz", "true"); return body }
		require.Equal(t, "ok\n", said())
		time.Sleep(time.Second)
		require.Equal(t, "the last run of the plan ended 1m1s ago\n", said())
		p.Done(run(t, nil))
		require.Equal(t, "ok\n", said())
	})
}

func get(t *testing.T, address string) (int, string) {
	t.Helper()
	response, err := http.Get("http://" + address + "/healthz")
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func TestRDY2_ServesUntilItIsToldToEnd(t *testing.T) {
	p := &probe.Probe{}
	p.Done(run(t, nil))
	listeners, err := probe.Listen("127.0.0.1:0", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, listeners...) }()
	for _, l := range listeners {
		status, body := get(t, l.Addr().String())
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, "ok\n")
	}
	goroutines := runtime.NumGoroutine()
	silent, err := net.Dial("tcp", listeners[0].Addr().String()) // sends no request
	require.NoError(t, err)
	defer silent.Close()
	_, _ = get(t, listeners[0].Addr().String())
	cancel()
	require.NoError(t, <-done)
	_, err = net.Dial("tcp", listeners[1].Addr().String())
	require.Error(t, err)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() < goroutines }, 20*time.Second, 10*time.Millisecond)

	listeners, err = probe.Listen("127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listeners[0].Close())
	require.ErrorContains(t, p.Serve(t.Context(), listeners...), "health probe: ")
}

func TestRDY2_ABusyAddressIsAnError(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	first, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := first.Addr().String()
	require.NoError(t, first.Close())
	_, err = probe.Listen(address, busy.Addr().String())
	require.ErrorContains(t, err, busy.Addr().String())
	again, err := probe.Listen(address)
	require.NoError(t, err, "the earlier listeners are closed")
	require.NoError(t, again[0].Close())
}

func TestSEC6_EndlessHeadersEnd(t *testing.T) {
	listeners, err := probe.Listen("127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- (&probe.Probe{}).Serve(ctx, listeners...) }()
	defer func() { cancel(); require.NoError(t, <-done) }()
	conn, err := net.Dial("tcp", listeners[0].Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	sent := make(chan int)
	go func() {
		n, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\nX: ")
		for more := 0; err == nil && n < 64<<20; n += more {
			more, err = conn.Write(bytes.Repeat([]byte("x"), 1<<16))
		}
		sent <- n
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil { // the connection may have been reset before
		defer response.Body.Close()
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)
	}
	require.Less(t, <-sent, 64<<20, "plus the kernel's socket buffers")
}
