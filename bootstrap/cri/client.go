// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/printable"
	"github.com/slipway-dev/slipway/internal/waiting"
)

// Bounds on the size of an answer. The status of a runtime has a few KiB; a list of
// sandboxes has all their labels and annotations.
const (
	maxMessage = 4 << 20  // the default of gRPC's own clients
	maxList    = 16 << 20 // the kubelet's, and containerd's, for messages of the CRI
	maxHeader  = 64 << 10 // of all headers, or trailers
)

// Error returns one line with the code and the message.
func (e *rpcError) Error() string {
	return fmt.Sprintf("the runtime answered: %s (gRPC code %d)", printable.Line(e.Message), e.Code)
}

// status asks the runtime once, and CRI-O for the rest.
func (e Endpoint) status(ctx context.Context) (status, error) {
	return ask(ctx, e, rpc{"Status", verbose, maxMessage}, "", func(found Endpoint, answer []byte) (s status, err error) {
		info, err := parseStatus(answer)
		if err != nil {
			return s, err
		}
		s.LastLoad = string(info["lastCNILoadStatus"])
		if config := info["cniconfig"]; len(config) > 0 {
			if s.CNI, s.Networks, err = parseCNIConfig(config); err == nil {
				s.CNI.OwnLoopback, err = parseOwnLoopback(info["config"])
			}
			return s, err
		}
		s.CNI, err = found.config(ctx)
		return s, err
	})
}

// SandboxIDs asks the runtime once for the IDs of all pod sandboxes that it knows,
// including those that do not run. A sandbox that is still being created may be missing:
// containerd lists it only once it has a network. Set a deadline in ctx: a hanging runtime
// is waited for until it ends.
func (e Endpoint) SandboxIDs(ctx context.Context) ([]string, error) {
	return ask(ctx, e, rpc{"ListPodSandbox", nil, maxList}, " for its sandboxes", parseSandboxes) // no filter: all
}

// rpc is a call of the RuntimeService, with its message and the bound on its answer.
type rpc struct {
	method  string
	message []byte
	limit   uint32
}

// ask parses the answer to a call, which is made on a connection of its own. It explains
// the error of a runtime that does not know the call, and that of a path without a runtime.
func ask[T any](ctx context.Context, e Endpoint, r rpc, what string, parse func(Endpoint, []byte) (T, error)) (parsed T, err error) {
	ctx, wait := waiting.On(ctx, "the container runtime to answer")
	defer wait.End()
	isNamed := e.Path != ""
	if e, err = e.found(ctx); err != nil {
		return parsed, err
	}
	answer, err := e.call(ctx, r)
	hasNone := errors.Is(err, errors.ErrUnsupported)
	if hasNone {
		err = fmt.Errorf("it has no CRI, or an older one than v1 (containerd before 1.6); in containerd the plugin may be disabled, or have failed: %w", err)
	}
	isAnswer := err == nil || !hasNone && errors.As(err, new(*rpcError))
	if isNamed && !isAnswer && ctx.Err() == nil && !errors.Is(err, errUnproven) {
		err = fmt.Errorf("%w: %w", errUnproven, err)
	}
	if err == nil {
		parsed, err = parse(e, answer)
	}
	if err != nil {
		var none T
		return none, fmt.Errorf("ask the container runtime at %q%s: %w", e.Path, what, err)
	}
	return parsed, nil
}

// call makes one unary call of gRPC, by its protocol over HTTP/2
// (grpc/doc/PROTOCOL-HTTP2.md).
func (e Endpoint) call(ctx context.Context, r rpc) (answer []byte, err error) {
	body := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(r.message))) // not compressed
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/runtime.v1.RuntimeService/"+r.method, bytes.NewReader(append(body, r.message...)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("TE", "trailers")
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	err = e.exchange(req, &protocols, "gRPC", func(resp *http.Response) error {
		if answer, err = readMessage(resp.Body, r.limit); err != nil {
			return ended(ctx, err)
		}
		status := resp.Trailer
		if answer == nil && resp.Header.Get("Grpc-Status") != "" {
			status = resp.Header // an error without a message comes with it at once
		}
		return checkStatus(status, answer)
	})
	return answer, err
}

// exchange sends a request over a connection of its own, and has the answer read, if that
// is in the language.
func (e Endpoint) exchange(req *http.Request, protocols *http.Protocols, language string, read func(*http.Response) error) error {
	if _, err := socket(e.Path); err != nil {
		return err
	}
	conn, err := e.dial(req.Context())
	if err != nil {
		return err
	}
	defer conn.Close()
	used := false
	t := &http.Transport{
		Protocols: protocols,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if used {
				return nil, errors.New("the runtime ended the connection")
			}
			used = true
			return conn, nil
		},
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}
	defer t.CloseIdleConnections()
	resp, err := t.RoundTrip(req)
	if err != nil {
		return ended(req.Context(), err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "application/"+strings.ToLower(language)) {
		return fmt.Errorf("it does not speak %s: HTTP status %d, content type %q", language, resp.StatusCode, kind)
	}
	return read(resp)
}

// ended returns why ctx ended, if it did, else err.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// readMessage reads the only message of an answer, to its end; nil if there is none.
func readMessage(body io.Reader, limit uint32) ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(body, head[:]); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	size := binary.BigEndian.Uint32(head[1:])
	switch {
	case head[0] != 0:
		return nil, errors.New("read the answer: it is compressed, though not requested")
	case size > limit:
		return nil, fmt.Errorf("read the answer: it has %d bytes, more than %d", size, limit)
	}
	message := make([]byte, size)
	if _, err := io.ReadFull(body, message); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	switch n, err := io.ReadFull(body, head[:1]); {
	case n > 0:
		return nil, errors.New("read the answer: data follows its end")
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return message, nil
}

// checkStatus returns the error in the trailers.
func checkStatus(trailers http.Header, answer []byte) error {
	text := trailers.Get("Grpc-Status")
	code, err := strconv.ParseUint(text, 10, 16)
	switch {
	case err != nil:
		return fmt.Errorf("read the answer: its status %q is not a gRPC code", text)
	case code != 0:
		message := trailers.Get("Grpc-Message")
		if plain, err := url.PathUnescape(message); err == nil {
			message = plain
		}
		return &rpcError{Code: int(code), Message: message}
	case answer == nil:
		return errors.New("read the answer: it is empty")
	}
	return nil
}
