// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/slipway-dev/slipway/internal/verify/process"
)

// Client sends raw requests to the API server, as one user. Tests use it to make and change
// objects; it never retries.
type Client struct {
	server, token string
	http          *http.Client
}

// Error is an answer of the API server other than success.
type Error struct {
	Method, Path string
	Code         int
	Body         string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: status %d: %s", e.Method, e.Path, e.Code, e.Body)
}

// Client returns a client for the user, with its own connections.
func (s *Server) Client(u User) *Client { return NewClient(s.URL, s.CAPEM, u.Token(), nil) }

// NewClient returns a client of any API server, for the user with the token. dial makes its
// connections; nil means from this process.
func NewClient(url string, caPEM []byte, token string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(caPEM)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true, DialContext: dial,
		TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: time.Minute,
	}
	return &Client{url, token, &http.Client{Transport: transport}}
}

// Admin returns the client of the user [Admin].
func (s *Server) Admin() *Client { return s.admin }

// Do sends one request. An answer other than 2xx is an [*Error].
func (c *Client) Do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if res.StatusCode/100 != 2 {
		return nil, &Error{method, path, res.StatusCode, string(answer)}
	}
	return answer, nil
}

// Eventually calls ask until it returns no error, for at most a minute: the API server learns
// rules, policies and definitions through its own watches.
func Eventually(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return process.Until(ctx, "the API server has learnt of it", ask)
}

// Ready returns an error that names what the API server still waits for.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.Get(ctx, "/readyz")
	return err
}

// WaitServed requests path until the API server serves it.
func (c *Client) WaitServed(ctx context.Context, path string) error {
	return Eventually(ctx, func(ctx context.Context) error {
		_, err := c.Get(ctx, path)
		return err
	})
}

// Content types of changes.
const (
	contentJSON  = "application/json"
	contentMerge = "application/merge-patch+json"
	contentApply = "application/apply-patch+yaml"
)

// Get reads path.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	return c.Do(ctx, http.MethodGet, path, "", nil)
}

// Create makes an object in the collection path.
func (c *Client) Create(ctx context.Context, path string, object any) error {
	return c.send(ctx, http.MethodPost, path, contentJSON, object)
}

// Merge changes the object at path by a JSON merge patch (RFC 7386).
func (c *Client) Merge(ctx context.Context, path string, patch any) error {
	return c.send(ctx, http.MethodPatch, path, contentMerge, patch)
}

// ApplyYAML makes or changes the object at path by a server-side apply.
func (c *Client) ApplyYAML(ctx context.Context, path string, manifest []byte) error {
	_, err := c.Do(ctx, http.MethodPatch, path+"?fieldManager=realkube&force=true", contentApply, manifest)
	return err
}

// Delete removes the object at path.
func (c *Client) Delete(ctx context.Context, path string) error {
	_, err := c.Do(ctx, http.MethodDelete, path, "", nil)
	return err
}

func (c *Client) send(ctx context.Context, method, path, contentType string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	_, err = c.Do(ctx, method, path, contentType, body)
	return err
}
