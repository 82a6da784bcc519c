// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/timeline"
)

// drawing is the value of --timeline, and the content of the drawing.
type drawing struct {
	timeline.Recorder
	path string // "": nothing is drawn
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

// save writes the drawing of what is known. After an error, which the end of the run would
// only repeat, nothing is drawn.
func (d *drawing) save() error {
	if d.path == "" {
		return nil
	}
	if err := d.WriteFile(d.path); err != nil {
		d.path = ""
		return fmt.Errorf("--timeline: %w", err)
	}
	return nil
}
