// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
)

// settle gives the fields what follows from others, once all flags are known.
func (a *app) settle() error {
	switch {
	case a.given("log-level"):
	case a.debug:
		a.logLevel = "debug"
	case a.output == formatJSON:
		a.logLevel = "info" // the progress that text output shows otherwise
	}
	if a.row.only != "" {
		a.only = []string{a.row.only}
	}
	if err := a.onlyNothing(); err != nil {
		return err
	}
	if a.nodeName == "" {
		a.nodeName, _ = os.Hostname() // sources that need a name say so when it is empty
	}
	a.agent = cmp.Or(a.onlyAgent, a.agent)
	a.apiServers = withScheme(append(a.apiServers, a.apiServer))
	a.timeline.path = a.timelineFile
	a.olderInstallerPaths()
	return a.checkSources()
}

// onlyNothing refuses to run only a step that no flag gives anything to do.
func (a *app) onlyNothing() error {
	if strings.HasPrefix(a.name, "uninstall") {
		return nil // undoing works from the record
	}
	all := a.lacks()
	if a.name != "check" {
		all[stepPreflight] = "only check has that step"
	}
	for step, lacks := range all {
		switch {
		case lacks == "" || !slices.Contains(a.only, step):
		case a.row.only != "":
			return usageError{errors.New(lacks)}
		default:
			return usageError{fmt.Errorf("--only %s, and %s", step, lacks)}
		}
	}
	return nil
}

// lacks is what the steps lack to which no flag gives anything to do.
func (a *app) lacks() map[string]string {
	return map[string]string{
		stepModules: lacking("--kernel-modules names none", a.modules...),
		stepConfig:  lacking("no --source is given", a.sources...),
		stepCNI:     lacking(nothingToInstall, append(slices.Clone(a.plugins), a.cniConf, a.cniConfKey, a.cniChain, a.cniTemplate)...),
	}
}

// lacking returns the message if none of the values is given.
func lacking(say string, values ...string) string {
	if strings.Join(values, "") != "" {
		return ""
	}
	return say
}

// olderInstallerPaths derives the CNI folders as shell installers do, which know the
// host's root by a prefix, unless a flag sets it.
func (a *app) olderInstallerPaths() {
	if a.hostProc != "" {
		if a.hostPrefix+a.cniDir+a.cniConfPath != "" {
			a.logger().Warn("HOST_PREFIX, CNI_DIR and CILIUM_CNI_CONF have no use with --host-proc: paths are the host's own")
		}
		return
	}
	derive := func(to *string, name, from, value string) {
		if from != "" && !a.given(name) {
			*to = value
		}
	}
	derive(&a.cniBinDir, "cni-bin-dir", a.hostPrefix, below(a.hostPrefix, usualBinDir))
	derive(&a.cniConfDir, "cni-conf-dir", a.hostPrefix, below(a.hostPrefix, usualConfDir))
	derive(&a.cniBinDir, "cni-bin-dir", a.cniDir, filepath.Join(a.cniDir, "bin"))
	derive(&a.cniConfDir, "cni-conf-dir", a.cniConfPath, filepath.Dir(a.cniConfPath))
	derive(&a.cniConfName, "cni-conf-name", a.cniConfPath, filepath.Base(a.cniConfPath))
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
