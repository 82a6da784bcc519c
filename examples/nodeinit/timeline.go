// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/timeline"
	"github.com/slipway-dev/slipway/internal/durable"
)

// drawing is the value of --timeline, and what is drawn.
type drawing struct {
	timeline.Recorder
	path string // "": nothing is
}

func (d *drawing) String() string { return d.path }
func (d *drawing) Type() string   { return "file" }
func (d *drawing) Set(path string) error {
	if filepath.Ext(path) != ".svg" {
		return errors.New("want a file that ends in .svg")
	}
	d.path = path
	return nil
}

// trace is nil if nothing is drawn.
func (d *drawing) trace() *bootstrap.Trace {
	if d.path == "" {
		return nil
	}
	return d.Trace()
}

func (d *drawing) save() error {
	if d.path == "" {
		return nil
	}
	var content bytes.Buffer
	if err := d.WriteSVG(&content); err != nil {
		return err
	}
	path, err := filepath.Abs(d.path)
	if err == nil {
		err = durable.WriteFile(path, 0o644, content.Bytes())
	}
	if err != nil {
		return fmt.Errorf("--timeline: %w", err)
	}
	return nil
}
