// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/configresolve"
)

// settle gives the fields what follows from others, once all flags are known.
func (a *app) settle() error {
	switch {
	case a.flag("log-level").given:
	case a.debug:
		a.logLevel = "debug"
	case a.quiet:
		a.logLevel = "error"
	case a.output == formatJSON:
		a.logLevel = "info" // the progress that text output shows otherwise
	}
	if a.quiet && a.output != formatJSON {
		a.stdout, a.width = io.Discard, 0
	}
	if a.row.only != "" {
		a.only = []string{a.row.only}
	}
	if a.nodeName == "" {
		a.nodeName, _ = os.Hostname() // sources that need a name say so when it is empty
	}
	a.apiServers = withScheme(append(a.apiServers, a.apiServer))
	if _, err := a.specs("any"); err != nil {
		return usage("--source: %w", err)
	}
	a.mistyped(os.Environ())
	return a.olderPaths()
}

// mistyped warns of variables that nearly have the name of a flag's own. Others may be those of a
// Kubernetes service.
func (a *app) mistyped(environ []string) {
	var known []string
	for _, f := range a.rows() {
		known = append(known, strings.TrimPrefix(f.variables()[0], ownPrefix))
	}
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		own, isOwn := strings.CutPrefix(name, ownPrefix)
		if meant := configresolve.Nearest(own, known); isOwn && meant != "" && !slices.Contains(known, own) {
			a.warn("environment variable " + name + " has no meaning: did you mean " + ownPrefix + meant + "?")
		}
	}
}

// older are the variables of Cilium's shell installers that give a flag its value, unless the
// flag is given. They know the host's root by a prefix.
var older = []struct {
	variable, flag string
	value          func(string) string
}{
	{"CNI_DIR", "cni-bin-dir", func(dir string) string { return filepath.Join(dir, "bin") }},
	{"HOST_PREFIX", "cni-bin-dir", func(prefix string) string { return below(prefix, usualBinDir) }},
	{"CILIUM_CNI_CONF", "cni-conf-dir", filepath.Dir}, // of cni-install.sh, which Cilium had until 1.13
	{"CNI_CONF_DIR", "cni-conf-dir", filepath.Clean},
	{"HOST_PREFIX", "cni-conf-dir", func(prefix string) string { return below(prefix, usualConfDir) }},
	{"CILIUM_CNI_CONF", "cni-conf-name", filepath.Base},
}

func (a *app) olderPaths() error {
	for _, o := range older {
		value, _ := a.getenv(o.variable)
		f := a.flag(o.flag)
		switch value = strings.TrimSpace(value); {
		case value == "" || f.name == "" || f.given:
			continue
		case a.hostProc != "":
			a.warn(o.variable + " has no use with --host-proc: paths are the host's own")
			continue
		}
		f.give([]string{o.value(value)})
		if err := f.problem(); err != nil {
			return usage("environment variable %s: %w", o.variable, err)
		}
		a.prefixed = true
	}
	return nil
}

// below returns where path is on a host whose root is mounted at prefix. Links on the way
// lead to where they lead on the host: an absolute one starts at prefix, and none climbs
// above it. A missing path is left to the program that makes it.
func below(prefix, path string) string {
	const most = 40 // links, as in the kernel
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0]) // a ".." stays in /
		rest = rest[1:]
		target, err := os.Readlink(filepath.Join(prefix, next))
		if err != nil { // no link
			at = next
			continue
		}
		if links++; links > most {
			return filepath.Join(prefix, path) // opening it returns the error
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return filepath.Join(prefix, at)
}

func (a *app) logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		level = slog.LevelWarn
	}
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: shown}
	if a.logFormat == formatJSON {
		return slog.New(slog.NewJSONHandler(a.stderr, o))
	}
	return slog.New(slog.NewTextHandler(a.stderr, o))
}

// waits logs what is waited for, by a plan or beside it.
func (a *app) waits() *bootstrap.Trace {
	return &bootstrap.Trace{Waiting: func(_ context.Context, step, what string, _ time.Duration) {
		var attrs []any
		if step != "" {
			attrs = append(attrs, "step", step)
		}
		a.logger().Warn("waiting for "+bootstrap.OneLine(what), attrs...)
	}}
}

// shown makes one line of external text for a log.
func shown(_ []string, attr slog.Attr) slog.Attr {
	switch v := attr.Value.Any().(type) {
	case string:
		attr.Value = slog.StringValue(bootstrap.OneLine(v))
	case error:
		attr.Value = slog.StringValue(bootstrap.OneLine(v.Error()))
	}
	return attr
}
