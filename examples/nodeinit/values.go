// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/containernetworking/cni/pkg/utils"
	cniversion "github.com/containernetworking/cni/pkg/version"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/sysctl"
)

// checks check values that a flag's type does not check itself, each value of a list by
// itself. They look at nothing but the value. emptyNames handles empty ones.
var checks = map[string]func(value string) error{
	"host-proc": absolute, "cgroup-root": absolute, "bpf-root": absolute, "bpf-fallback": absolute,
	"sysctl-conf-dir": absolute, "cni-log-file": absolute, "write-cni-conf-when-ready": absolute, "host-prefix": absolute, "cni-dir": absolute,
	"report-metrics":   promFile,
	"runtime-endpoint": func(v string) error { return absolute(strings.TrimPrefix(v, "unix://")) },

	"state-dir": func(v string) error { return (&ledger.Ledger{Dir: v, Agent: "x", NoOwner: true}).Validate() },
	"agent":     func(v string) error { return (&ledger.Ledger{Agent: v, NoOwner: true}).Validate() },
	"owner":     func(v string) error { return (&ledger.Ledger{Agent: "x", Owner: v}).Validate() },

	"allow-config-keys": configKeys, "deny-config-keys": configKeys, "cni-conf-key": configKeys, "cgroup-root-key": configKeys,
	"k8s-namespace":       func(v string) error { return invalid(validation.IsDNS1123Label(v)) },
	"k8s-api-server":      apiServers,
	"k8s-api-server-urls": apiServers,
	"k8s-client-qps":      number,
	"k8s-client-burst":    notNegative,
	"node-name":           fileName,

	"kernel-modules":      fileName,
	"systemd-sysctl-unit": fileName,
	"sysctl":              setting,
	"sysctl-config-file":  confName,
	"drop-capabilities":   func(v string) error { _, err := capabilityNumbers([]string{v}); return err },

	"cni-bin-dir":      func(v string) error { return fields(cniinstall.Install{BinDir: folderOr(v, "")}) },
	"cni-conf-dir":     func(v string) error { return fields(cniinstall.Install{ConfDir: folderOr(v, "")}) },
	"also-cni-bin-dir": func(v string) error { return fields(cniinstall.Install{AlsoBinDirs: []string{v}}) },
	"cni-conf-name":    cniConfName,
	"cni-conf-path": func(v string) error {
		return cmp.Or(absolute(v), cniConfName(filepath.Base(v)))
	},
	"cni-backup-suffix": suffix,
	"cni-chain":         network,
	"cni-version":       func(v string) error { return oneOf(v, cniversion.All.SupportedVersions()) },
	"optional-plugins":  fileName,
	"plugins-elsewhere": fileName,

	"skip": step, "only": step,
	"ignore-preflight": func(v string) error { return oneOf(v, preflightNames) },
}

// checkGiven takes the white space around a flag's values away, and returns an error if one
// has no meaning.
func checkGiven(flag *pflag.Flag) error {
	values := withoutBlanks([]string{flag.Value.String()})
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		values = withoutBlanks(list.GetSlice())
		if err := list.Replace(values); err != nil {
			return err
		}
	} else if err := flag.Value.Set(values[0]); err != nil {
		return err
	}
	for _, value := range values {
		if err := checkValue(flag, value); err != nil {
			return fmt.Errorf("--%s %q: %w", flag.Name, value, err)
		}
	}
	return nil
}

func checkValue(flag *pflag.Flag, value string) error {
	check := checks[flag.Name]
	switch c, choice := flag.Value.(*choice); {
	case value == flag.DefValue:
		return nil
	case choice:
		return oneOf(value, c.allowed)
	case strings.ContainsRune(value, 0):
		return errors.New("has a NUL byte")
	case flag.Value.Type() == "duration" && flag.Name != "k8s-client-connection-keep-alive":
		return notNegative(value)
	case value == "" || check == nil:
		return nil
	}
	return check(value)
}

func absolute(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("must be an absolute path")
	}
	return nil
}

// promFile is the path of a file for node_exporter's textfile collector.
func promFile(path string) error {
	if filepath.Ext(path) != ".prom" {
		return errors.New("must end in .prom: the collector reads no other file")
	}
	return absolute(path)
}

func fileName(name string) error {
	if name != filepath.Base(name) || name == "." || name == ".." || !utf8.ValidString(name) {
		return errors.New("must be a name, without a slash")
	}
	return nil
}

// fields checks an installation of nothing: no more than its fields is looked at.
func fields(i cniinstall.Install) error {
	_, err := i.Wants(context.Background())
	return err
}

// cniConfName has its suffix: cleanup knows the file by its whole name.
func cniConfName(name string) error {
	if filepath.Ext(name) == "" {
		return errors.New("must end in .conflist, .conf or .json")
	}
	return fields(cniinstall.Install{ConfName: name})
}

// confName is the name of a sysctl drop-in.
func confName(name string) error {
	if filepath.Ext(name) != ".conf" || name == ".conf" {
		return errors.New("must end in .conf: nothing else in the directory is read")
	}
	return fileName(name)
}

func suffix(s string) error {
	if !strings.HasPrefix(s, ".") || slices.Contains([]string{".", ".conf", ".conflist", ".json"}, filepath.Ext(s)) {
		return errors.New("must begin with a dot, and be none by which runtimes load a file")
	}
	return fileName("x" + s)
}

func notNegative(value string) error {
	if strings.HasPrefix(value, "-") {
		return errors.New("must not be negative")
	}
	return nil
}

func number(value string) error {
	if f, err := strconv.ParseFloat(value, 32); err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return errors.New("must be a number")
	}
	return nil
}

func setting(line string) error {
	_, err := sysctl.Parse(strings.NewReader(line))
	return err
}

func configKeys(value string) error {
	for _, key := range strings.Fields(value) {
		if err := invalid(validation.IsConfigMapKey(key)); err != nil {
			return err
		}
	}
	return nil
}

func apiServers(value string) error {
	return kube.Connection{Servers: withScheme(strings.Fields(value))}.Validate()
}

func network(name string) error {
	if name == "*" {
		return nil
	}
	if err := utils.ValidateNetworkName(name); err != nil {
		return errors.New("must be the name of a network, or *")
	}
	return nil
}

func step(name string) error { return oneOf(name, choosable()) }

func oneOf(value string, all []string) error {
	if !slices.Contains(all, value) {
		return mistyped{fmt.Errorf("must be one of %s", strings.Join(all, ", ")), near(value, all)}
	}
	return nil
}

func invalid(why []string) error {
	if len(why) > 0 {
		return errors.New(why[0])
	}
	return nil
}

// checkSources returns an error if --source names no source. Names that the environment may
// give may be missing.
func (a *app) checkSources() error {
	kinds := []string{"config-map", "cilium-node-config", "node", "dir", "file", "env"}
	for source := range strings.SplitSeq(strings.Join(a.sources, ","), ",") {
		_, err := configresolve.ParseSpecs([]string{source}, configresolve.Ref{Namespace: "x", Name: "x"}, "x")
		if kind, _, _ := strings.Cut(strings.TrimSpace(source), ":"); err != nil && kind != "" {
			return usageError{mistyped{fmt.Errorf("--source: %w", err), near(kind, kinds)}}
		}
	}
	return nil
}
