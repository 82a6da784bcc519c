// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// The addresses of a [Listen] without any: the port is the one at which the kubelet
// asks Cilium's agent.
const (
	defaultAddress  = "127.0.0.1:9879"
	defaultAddress6 = "[::1]:9879"
)

// A request has one line and a few headers. A slower or longer one is cut off, so that no
// unprivileged client holds up the kubelet.
const (
	requestTime  = 5 * time.Second
	maxHeader    = 8 << 10
	shutdownTime = time.Second
)

// Listen listens at the addresses, such as 127.0.0.1:9879. Without any, it listens at
// 127.0.0.1:9879 and, where the node has IPv6, at [::1]:9879.
func Listen(addresses ...string) ([]net.Listener, error) {
	optional := ""
	if len(addresses) == 0 {
		addresses, optional = []string{defaultAddress, defaultAddress6}, defaultAddress6
	}
	var listeners []net.Listener
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err != nil && address == optional && noIPv6(err) {
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("health probe: %w", err), closeAll(listeners))
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Serve answers until ctx ends, which is no error, or a listener fails. It closes the
// listeners.
func (p *Probe) Serve(ctx context.Context, listeners ...net.Listener) error {
	server := &http.Server{Handler: p, ReadTimeout: requestTime, WriteTimeout: requestTime, MaxHeaderBytes: maxHeader}
	server.SetKeepAlivesEnabled(false)
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- server.Serve(l) }()
	}
	var err error
	left := len(listeners)
	select {
	case <-ctx.Done():
	case err = <-ended:
		left--
		err = fmt.Errorf("health probe: %w", err)
	}
	down, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer stop()
	if server.Shutdown(down) != nil {
		_ = server.Close() // a client still being answered is cut off
	}
	for range left {
		<-ended
	}
	return err
}
