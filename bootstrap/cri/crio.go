// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
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

var errConfig = errors.New("read CRI-O's configuration")

// parseConfig reads network_dir and plugin_dirs of the table crio.network. It supports as
// much of TOML as CRI-O writes there: one line for a key, with a string or a list of
// strings (github.com/BurntSushi/toml escapes the ends of lines in strings).
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
			var dirs []string
			if dirs, err = stringList("[" + value + "]"); err == nil && len(dirs) != 1 {
				err = fmt.Errorf("%w: network_dir is not a string", errConfig)
			} else if err == nil {
				c.ConfDir = dirs[0]
			}
		case "plugin_dirs":
			c.PluginDirs, err = stringList(value)
		}
		if err != nil {
			return CNI{}, err
		}
	}
	return c, c.clean()
}

// stringList reads a list of strings in quotes.
func stringList(text string) (all []string, err error) {
	if err := countElements(text); err != nil {
		return nil, fmt.Errorf("%w: %w", errConfig, err)
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "[")
	for ok {
		rest = strings.TrimSpace(rest)
		if rest == "]" {
			return all, nil
		}
		var quoted, one string
		if quoted, err = strconv.QuotedPrefix(rest); err != nil || quoted[0] != '"' {
			break
		}
		if one, err = strconv.Unquote(quoted); err != nil {
			break
		}
		all, rest = append(all, one), strings.TrimSpace(rest[len(quoted):])
		rest, ok = strings.CutPrefix(rest, ",")
		ok = ok || rest == "]"
	}
	return nil, fmt.Errorf("%w: %q is not a list of strings", errConfig, text)
}
