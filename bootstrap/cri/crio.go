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
func (e Endpoint) config(ctx context.Context) (c CNI, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/config", nil)
	if err != nil {
		return c, err
	}
	var text []byte
	err = e.exchange(req, nil, "TOML", func(resp *http.Response) (err error) {
		text, err = io.ReadAll(io.LimitReader(resp.Body, maxMessage))
		return err
	})
	switch {
	case ctx.Err() != nil:
		return c, context.Cause(ctx)
	case err != nil:
		return c, nil
	}
	c, err = parseConfig(string(text))
	c.OwnLoopback = err == nil
	return c, err
}

// parseConfig reads the table crio.network. It supports as much of TOML as CRI-O writes
// there: one line for a key, with a string or a list of strings (github.com/BurntSushi/toml
// escapes the ends of lines in strings), which JSON writes alike.
func parseConfig(text string) (c CNI, err error) {
	table := ""
	c.CRIO.StaysReady = true
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
		case "cni_default_network":
			err = json.Unmarshal([]byte(value), &c.CRIO.DefaultNetwork)
		case "cni_status_grace_period": // since 1.36.3
			c.CRIO.StaysReady = strings.TrimSpace(value) == `"0s"`
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
