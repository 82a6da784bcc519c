// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/configresolve"
)

// flag is a row of the table. As a pflag.Value it keeps the texts that it is given.
type flag struct {
	name, short string
	to          any    // its field: *string, *[]string, *bool, *int, *float32 or *time.Duration
	on          string // the commands that have it; "": all
	off         string // those of them that accept it without a use, and do not show it
	env         string // the names by which agents' deployments pass it, beside SLIPWAY_NAME
	def         string
	help        string
	side        side
	empty       emptiness
	choices     []string                 // its possible values
	check       func(value string) error // looks at nothing but one value, which is not empty
	words       func([]string) []string  // takes apart a list that was given as one value
	helps       string                   // the codes of errors that it ends, or a step whose it ends
	lines       bool                     // the values of a list may hold commas
	negative    bool                     // a number may be below zero
	hidden      bool

	texts []string
	given bool
}

// side is where a path is.
type side int

const (
	container side = 1 + iota // this process's own
	host
)

// emptiness is what a flag that was given an empty value means: by default, an empty value.
type emptiness int

const (
	meansDefault emptiness = 1 + iota
	meansNothing           // it comes from an unset variable, and is refused: it would mean the opposite
)

// The methods of pflag.Value.

func (f *flag) String() string { return strings.Join(f.texts, ",") }

func (f *flag) Set(text string) error {
	values := []string{text}
	if f.isList() && !f.lines {
		values = strings.Split(text, ",")
	}
	if f.isList() && f.given {
		values = append(f.texts, values...)
	}
	f.give(values)
	return nil // problem returns the error
}

// Type is how help calls the value.
func (f *flag) Type() string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", f.to), "*")
	switch {
	case len(f.choices) > 0 && !f.isList():
		return strings.Join(f.choices, "|")
	case f.side == host:
		kind = "host-path"
	case f.side == container:
		kind = "path"
	case kind == "time.Duration":
		return "duration"
	case kind == "float32":
		return "number"
	case f.isList():
		kind = "string"
	}
	if f.isList() {
		kind += "s"
	}
	return kind
}

func (f *flag) isList() bool { _, list := f.to.(*[]string); return list }

// give gives the flag its values, and the field as far as they are valid. White space around
// them does not count, such as the newline at the end of a ConfigMap's value that was a file.
func (f *flag) give(values []string) {
	f.texts, f.given = values, true
	if f.words != nil {
		f.texts = f.words(f.texts)
	}
	for i, text := range f.texts {
		f.texts[i] = strings.TrimSpace(text)
	}
	if f.empty == meansDefault && f.String() == "" {
		f.texts = []string{f.def}
	}
	_ = f.assign() // checked
}

// assign gives the field its value.
func (f *flag) assign() (err error) {
	text := f.String()
	switch to := f.to.(type) {
	case *[]string:
		*to = f.texts
	case *string:
		*to = text
	case *bool:
		if *to, err = strconv.ParseBool(text); err != nil {
			err = errors.New("must be true or false")
		}
	case *int:
		if *to, err = strconv.Atoi(text); err != nil {
			err = errors.New("must be a number, without a fraction")
		}
	case *float32:
		number, parseErr := strconv.ParseFloat(text, 32)
		if *to = float32(number); parseErr != nil || math.IsNaN(number) || math.IsInf(number, 0) {
			err = errors.New("must be a number")
		}
	case *time.Duration:
		if *to, err = time.ParseDuration(text); err != nil {
			err = errors.New("must be a duration, such as 90s or 5m")
		}
	}
	return err
}

// problem returns an error that names the flag if a value has no meaning.
func (f *flag) problem() error {
	if f.empty == meansNothing && strings.Trim(f.String(), ",") == "" {
		return usage("--%s is given and names nothing", f.name)
	}
	for _, text := range f.texts {
		if err := f.meaningless(text); err != nil {
			return usage("--%s %q: %w", f.name, text, err)
		}
	}
	return nil
}

func (f *flag) meaningless(text string) error {
	_, number := f.to.(*int)
	_, duration := f.to.(*time.Duration)
	switch err := f.assign(); {
	case text == f.def:
		return nil
	case len(f.choices) > 0:
		return oneOf(text, f.choices)
	case strings.ContainsRune(text, 0):
		return errors.New("has a NUL byte")
	case err != nil:
		return err
	case (number || duration) && !f.negative && strings.HasPrefix(text, "-"):
		return errors.New("must not be negative")
	case text == "" || f.check == nil && f.side != host:
		return nil
	case f.check != nil:
		return f.check(text)
	}
	return absolute(text)
}

// variables are the names of the flag's variable in the environment.
func (f *flag) variables() []string {
	own := ownPrefix + strings.ToUpper(strings.ReplaceAll(f.name, "-", "_"))
	return append([]string{own}, strings.Fields(f.env)...)
}

const ownPrefix = "SLIPWAY_"

// accepts reports whether a command has the flag.
func (f *flag) accepts(command string) bool {
	alike := map[string]string{"uninstall": "apply", "uninstall-cni": "install-cni"}[command]
	on := strings.Fields(f.on)
	return f.on == "" || slices.Contains(on, command) || slices.Contains(on, alike)
}

// shows reports whether the help of a command has the flag.
func (f *flag) shows(c *cobra.Command) bool {
	for parent := c; parent != nil; parent = parent.Parent() {
		if slices.Contains(strings.Fields(f.off), parent.Name()) {
			return false
		}
	}
	return !f.hidden && (f.on == "" || slices.Contains(strings.Fields(f.on), c.Name()))
}

// rows are all of the table.
func (a *app) rows() (rows []*flag) {
	for _, g := range a.groups {
		rows = append(rows, g.flags...)
	}
	return rows
}

// flagsOf are the rows of a command.
func (a *app) flagsOf(command string) (rows []*flag) {
	has := make(map[string]bool)
	for _, f := range a.rows() {
		if !has[f.name] && f.accepts(command) {
			rows, has[f.name] = append(rows, f), true
		}
	}
	return rows
}

// register gives a command its flags, and a shell the values of those with few.
func (a *app) register(c *cobra.Command, flags *pflag.FlagSet, persistent bool) {
	for _, f := range a.flagsOf(c.Name()) {
		if (f.on == "") != persistent {
			continue
		}
		pf := flags.VarPF(f, f.name, f.short, f.help)
		if _, isSwitch := f.to.(*bool); isSwitch {
			pf.NoOptDefVal = "true"
		}
		if len(f.choices) > 0 {
			_ = c.RegisterFlagCompletionFunc(f.name, cobra.FixedCompletions(f.choices, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
		}
	}
}

// setDefaults gives the fields of the command's flags their values where none is given.
func (a *app) setDefaults() {
	for _, f := range a.flagsOf(a.name) {
		if f.def != "" && !f.given {
			f.give([]string{f.def})
			f.given = false
		}
	}
}

// flag returns the flag of the command, or one that is not given.
func (a *app) flag(name string) *flag {
	for _, f := range a.flagsOf(a.name) {
		if f.name == name {
			return f
		}
	}
	return &flag{}
}

// complete fills in the flags that the command line did not give: from the environment, else
// from the configuration file. A timeout from there applies only afterwards.
func (a *app) complete(ctx context.Context) error {
	all := a.flagsOf(a.name)
	for _, f := range all {
		if err := f.problem(); f.given && err != nil {
			return err
		}
	}
	for _, f := range all {
		if err := f.fromEnvironment(a.getenv); err != nil {
			return err
		}
	}
	ctx, stop := a.inTime(ctx)
	defer stop()
	if err := a.fromFile(ctx, all); err != nil {
		return err
	}
	return a.settle()
}

func (f *flag) fromEnvironment(getenv func(string) (string, bool)) error {
	for _, name := range f.variables() {
		value, _ := getenv(name)
		if f.given || strings.TrimSpace(value) == "" {
			continue
		}
		values := []string{value}
		switch {
		case f.lines:
			values = strings.Split(strings.TrimSpace(value), "\n")
		case f.isList():
			values = strings.Split(value, ",")
		}
		f.give(values)
		if err := f.problem(); err != nil {
			return usage("environment variable %s: %w", name, err)
		}
	}
	return nil
}

// fromFile takes values from the configuration file, which serves all commands.
func (a *app) fromFile(ctx context.Context, all []*flag) error {
	if a.configFile == "" {
		return nil
	}
	var file yaml.Node
	if err := a.using("", &a.configFile, func() error { return configresolve.DecodeFile(ctx, a.configFile, &file) }); err != nil {
		return usageError{err}
	}
	if file.Kind != yaml.MappingNode && file.Kind != 0 { // an empty file
		return usage("--config: %s: line %d: must be a map of flags to values", a.configFile, file.Line)
	}
	seen := map[string]bool{"config": true}
	for pair := range slices.Chunk(file.Content, 2) {
		name := pair[0].Value
		err := a.setFromFile(all, name, pair[1])
		if seen[name] {
			err = fmt.Errorf("flag %q is given twice, or has no use in a file", name)
		}
		if err != nil {
			return usage("--config: %s: line %d: %w", a.configFile, pair[0].Line, err)
		}
		seen[name] = true
	}
	return nil
}

func (a *app) setFromFile(all []*flag, name string, value *yaml.Node) error {
	if !slices.Contains(names(a.rows()), name) {
		return fmt.Errorf("unknown flag %q%s", name, didYouMean(name, names(all)))
	}
	f := a.flag(name)
	if f.name == "" || f.given {
		return nil
	}
	texts := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode && f.isList() {
		texts = value.Content
	}
	var values []string
	for _, text := range texts {
		if text.Kind != yaml.ScalarNode || text.Tag == "!!null" {
			return fmt.Errorf("%s: must be a value, or a list of values if the flag takes several", name)
		}
		values = append(values, text.Value)
	}
	f.give(values)
	return f.problem()
}

func names(flags []*flag) (all []string) {
	for _, f := range flags {
		all = append(all, f.name)
	}
	return all
}
