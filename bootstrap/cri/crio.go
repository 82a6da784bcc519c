// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// config asks CRI-O for its configuration in TOML, at /config on its socket, over HTTP/1
// (cri-o, server/inspect.go). Any other answer, or none, means that the runtime does not
// report where it looks.
func (e Endpoint) config(ctx context.Context) (CNI, error) {
	text, err := e.getConfig(ctx)
	switch {
	case ctx.Err() != nil:
		return CNI{}, context.Cause(ctx)
	case err != nil:
		return CNI{}, nil
	}
	c, err := parseConfig(text)
	c.OwnLoopback = err == nil
	return c, err
}

func (e Endpoint) getConfig(ctx context.Context) (string, error) {
	conn, err := e.dial(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	t := transport(conn, nil)
	t.DisableKeepAlives = true
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/config", nil)
	if err != nil {
		return "", err
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "application/toml" {
		return "", fmt.Errorf("HTTP status %d, content type %q", resp.StatusCode, kind)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	return string(text), err
}

// parseConfig reads network_dir and plugin_dirs of the table crio.network. It supports as
// much of TOML as CRI-O writes there: one line for a key, with a string or a list of
// strings (github.com/BurntSushi/toml escapes the ends of lines in strings), which JSON
// writes alike.
func parseConfig(text string) (c CNI, err error) {
	table := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = line
		}
		key, value, _ := strings.Cut(line, "=")
		if table != "[crio.network]" {
			continue
		}
		switch strings.TrimSpace(key) {
		case "network_dir":
			err = json.Unmarshal([]byte(value), &c.ConfDir)
		case "plugin_dirs":
			if err = countElements(value); err == nil {
				err = json.Unmarshal([]byte(value), &c.PluginDirs)
			}
		}
		if err != nil {
			return CNI{}, fmt.Errorf("read CRI-O's configuration: %w", err)
		}
	}
	return c, c.clean()
}
