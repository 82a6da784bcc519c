// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/configresolve"
)

// variables are the names by which agents' deployments already pass a flag's
// value in the environment. Each flag also has SLIPWAY_FLAG_NAME.
var variables = map[string][]string{
	"cgroup-root":               {"CGROUP_ROOT"},
	"node-name":                 {"K8S_NODE_NAME", "NODE_NAME"},
	"k8s-namespace":             {"CILIUM_K8S_NAMESPACE", "POD_NAMESPACE"},
	"owner":                     {"POD_UID"},
	"host-prefix":               {"HOST_PREFIX"},
	"cni-dir":                   {"CNI_DIR"},
	"cni-conf-path":             {"CILIUM_CNI_CONF"}, // of cni-install.sh, which Cilium had until 1.13
	"cni-conf-name":             {"CNI_CONF_NAME"},
	"overwrite-loopback":        {"OVERWRITE_LOOPBACK"},
	"overwrite-plugins":         {"OVERWRITE_CILIUM"},
	"custom-cni-conf":           {"CILIUM_CUSTOM_CNI_CONF"},
	"write-cni-conf-when-ready": {"WRITE_CNI_CONF_WHEN_READY"},
}

// complete fills in the flags that were not given: from the environment, else
// from the configuration file, else their defaults.
func (a *app) complete(ctx context.Context, f *pflag.FlagSet) (err error) {
	f.Visit(func(flag *pflag.Flag) {
		if e := checkGiven(flag); e != nil && err == nil {
			err = usageError{e}
		}
	})
	if err != nil {
		return err
	}
	if err := a.fromEnvironment(f); err != nil {
		return err
	}
	if err := a.fromFile(ctx, f); err != nil {
		return err
	}
	if !f.Changed("log-level") && a.output == formatJSON {
		a.logLevel = "info" // the progress that text output shows otherwise
	}
	if a.debug && !f.Changed("log-level") {
		a.logLevel = "debug"
	}
	if err := a.emptyNames(f); err != nil {
		return err
	}
	if err := a.onlyNothing(f); err != nil {
		return err
	}
	if a.nodeName == "" {
		a.nodeName, _ = os.Hostname() // sources that need a name say so when it is empty
	}
	a.apiServers = withScheme(append(words(a.apiServers), a.apiServer))
	a.allowKeys, a.denyKeys = words(a.allowKeys), words(a.denyKeys)
	if sources := words(a.sources); inCluster(sources) {
		a.sources = sources
	}
	if err := a.checkSources(); err != nil {
		return err
	}
	a.olderInstallerPaths(f)
	a.cgroupRoot = cmp.Or(a.cgroupRoot, ciliumCgroupRoot)
	a.bpfRoot = cmp.Or(a.bpfRoot, "/sys/fs/bpf")
	return nil
}

// emptyNames refuses a flag that was given without any name: it comes from an unset
// variable, and would mean the opposite of the intention.
func (a *app) emptyNames(f *pflag.FlagSet) error {
	for _, name := range []string{"source", "only", "ownership", "plan", "output-file", "dest", "agent"} {
		flag := f.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if !slices.ContainsFunc(values, func(v string) bool { return strings.TrimSpace(v) != "" }) {
			return usageError{fmt.Errorf("--%s is given and names nothing", name)}
		}
	}
	return nil
}

// onlyNothing refuses to run only a step that no flag gives anything to do.
func (a *app) onlyNothing(f *pflag.FlagSet) error {
	if f.Lookup("any-owner") != nil {
		return nil // undoing works from the record
	}
	all := a.lacks()
	if f.Lookup("ignore-preflight") == nil {
		all[stepPreflight] = "only check has that step"
	}
	for step, lacks := range all {
		if slices.Contains(a.only, step) && lacks != "" {
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

const ownPrefix = "SLIPWAY_"

func ownVariable(flag string) string {
	return ownPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func (a *app) fromEnvironment(f *pflag.FlagSet) (err error) {
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed || err != nil {
			return
		}
		for _, name := range append([]string{ownVariable(flag.Name)}, variables[flag.Name]...) {
			value, _ := a.getenv(name)
			if strings.TrimSpace(value) == "" {
				continue
			}
			if e := setFlag(f, flag, splitVariable(flag, value)); e != nil {
				err = usageError{fmt.Errorf("environment variable %s: %w", name, e)}
			}
			return
		}
	})
	return err
}

// splitVariable takes a variable's value apart for a flag whose values may hold
// commas: there each line is one.
func splitVariable(flag *pflag.Flag, value string) []string {
	if flag.Value.Type() == "stringArray" {
		return strings.Split(strings.TrimSpace(value), "\n")
	}
	if _, list := flag.Value.(pflag.SliceValue); list {
		return strings.Split(value, ",")
	}
	return []string{value}
}

// withoutBlanks returns values, or arguments up to a command of others, without white space
// around them, such as the newline at the end of a ConfigMap's value that was a file.
func withoutBlanks(values []string) []string {
	values = slices.Clone(values)
	for i, value := range values {
		if value == "--" {
			break
		}
		values[i] = strings.TrimSpace(value)
	}
	return values
}

// setFlag gives a flag its values, as they are: one, but for a list.
func setFlag(f *pflag.FlagSet, flag *pflag.Flag, values []string) error {
	values = withoutBlanks(values)
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		flag.Changed = true
		if err := list.Replace(values); err != nil {
			return err
		}
		return checkGiven(flag)
	}
	if len(values) != 1 {
		return fmt.Errorf("--%s takes one value", flag.Name)
	}
	if err := f.Set(flag.Name, values[0]); err != nil {
		return withUnit(err)
	}
	return checkGiven(flag)
}

// foreign are variables of the tests, and those that Kubernetes sets in every
// pod of a namespace with a Service called slipway.
var foreign = regexp.MustCompile(`^SLIPWAY_(TEST_|SERVICE_|PORT$|PORT_[0-9])`)

// mistyped lists the variables that are named as ours are and belong to no flag.
func (a *app) mistyped(environ []string) (names []string) {
	known := map[string]bool{}
	for _, c := range append((&app{}).command().Commands(), (&app{}).command()) {
		for _, flags := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			flags.VisitAll(func(flag *pflag.Flag) { known[ownVariable(flag.Name)] = true })
		}
	}
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, ownPrefix) && !known[name] && !foreign.MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}

func (a *app) fromFile(ctx context.Context, f *pflag.FlagSet) error {
	if a.configFile == "" {
		return nil
	}
	a.at.work("", "--config "+a.configFile)
	var top yaml.Node
	if err := configresolve.DecodeFile(ctx, a.configFile, &top); err != nil {
		return usageError{fmt.Errorf("--config: %w", err)}
	}
	if top.Kind == 0 {
		return nil // an empty file
	}
	if top.Kind != yaml.MappingNode {
		return usageError{fmt.Errorf("--config: %s: line %d: must be a map of flags to values", a.configFile, top.Line)}
	}
	seen := map[string]bool{}
	for pair := range slices.Chunk(top.Content, 2) {
		name := pair[0].Value
		err := a.setFromFile(f, name, pair[1])
		if seen[name] {
			err = usageError{fmt.Errorf("%s occurs twice", name)}
		}
		seen[name] = true
		if err != nil {
			return usageError{fmt.Errorf("--config: %s: line %d: %w", a.configFile, pair[0].Line, err)}
		}
	}
	return nil
}

func (a *app) setFromFile(f *pflag.FlagSet, name string, value *yaml.Node) error {
	flag := f.Lookup(name)
	switch {
	case flag == nil && knownElsewhere(name):
		return nil // one file serves all commands
	case flag == nil || name == "config":
		var names []string
		f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
		return mistyped{fmt.Errorf("unknown flag %q", name), near(name, names)}
	case flag.Changed:
		return nil
	}
	values, err := scalars(value)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return setFlag(f, flag, values)
}

// scalars returns the texts of a value or of a list of values, as they are written.
func scalars(n *yaml.Node) ([]string, error) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		return []string{n.Value}, nil
	case n.Kind == yaml.SequenceNode:
		var all []string
		for _, item := range n.Content {
			one, err := scalars(item)
			if err != nil || len(one) != 1 {
				return nil, errors.Join(err, errors.New("must be a list of values"))
			}
			all = append(all, one...)
		}
		return all, nil
	}
	return nil, errors.New("must be a value or a list of values")
}

// knownElsewhere reports whether some command has the flag.
func knownElsewhere(name string) bool {
	return slices.ContainsFunc((&app{}).command().Commands(), func(c *cobra.Command) bool {
		return c.Flags().Lookup(name) != nil
	})
}
