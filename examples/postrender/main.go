// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command postrender is a post-renderer of helm for Cilium's charts 1.18 to 1.20. It
// reads a rendered chart, and writes it with one init container, which is nodeinit, in
// place of the chart's own, or with none.
//
// The chart's settings for its init containers reach nodeinit. Where it cannot, and where
// there is a container, a flag or a variable that is not known here, nothing is written,
// and a sentence explains each cause. All but the agent's DaemonSet stays byte for byte.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

const (
	asInit = "init"
	asRun  = "run"
)

// options are settings that the chart cannot know.
type options struct {
	as          string   // one of the constants
	imageVolume string   // image with nodeinit; empty: the chart's image has it
	keep        []string // names of init containers that stay as they are, after nodeinit
	agentEnv    []string // names of variables that are for the agent only
	hasNodeinit bool     // the chart's image has it, whatever its tag
	readOnlyEtc bool     // nothing is written to the host's /etc
	clusterIP   bool     // the API server's ClusterIP is reached without Cilium
}

// usageError is the error of a flag or an argument.
type usageError struct{ error }

func main() {
	err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stdout)
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
	case os.Getenv("HELM_PLUGIN_NAME") == plugin:
		refuseAsPlugin(os.Stdout, err)
	case errors.As(err, new(usageError)):
		fmt.Fprintf(os.Stderr, "postrender: %v\npostrender: see --help\n", err)
		os.Exit(64)
	default:
		fmt.Fprintln(os.Stderr, "postrender:", err)
		os.Exit(1)
	}
}

// plugin is the name by which helm 4 knows this program.
const plugin = "slipway-postrender"

// refuseAsPlugin makes helm 4 show the reason. For a failed plugin helm shows neither standard
// error nor output; output that is not an object is refused, and shown.
func refuseAsPlugin(out io.Writer, err error) {
	fmt.Fprintf(out, "|\n  postrender: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
}

func run(args []string, in io.Reader, out, help io.Writer) error {
	var o options
	f := pflag.NewFlagSet(plugin, pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() { fmt.Fprintf(help, "Usage:\n  postrender [flags]\n\nFlags:\n%s", f.FlagUsagesWrapped(80)) }
	f.StringVar(&o.as, "as", asInit, "init: nodeinit is the only init container; run: there is none, nodeinit prepares the node in the agent's container, then executes the agent")
	f.StringVar(&o.imageVolume, "image-volume", "", "`image` with nodeinit, mounted as a volume; empty: nodeinit is in the PATH of the image that the chart's image.override names")
	f.StringSliceVar(&o.keep, "keep", nil, "`names` of additional init containers, separated by commas, that stay unchanged, after nodeinit; may be repeated")
	f.StringSliceVar(&o.agentEnv, "agent-env", nil, "`names` of variables of extraEnv, separated by commas, that are for the agent only, and that nodeinit does not get; may be repeated")
	f.BoolVar(&o.hasNodeinit, "image-has-nodeinit", false, "the chart's image has nodeinit in its PATH, although its tag is that of a release of Cilium")
	f.BoolVar(&o.readOnlyEtc, "read-only-etc", false, "the host's /etc is read-only: kernel values are set at each start, and no file keeps them")
	f.BoolVar(&o.clusterIP, "cluster-ip", false, "the API server's ClusterIP is reachable before Cilium runs, although Cilium replaces kube-proxy")
	err := f.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case err != nil:
		return usageError{fmt.Errorf("%w%s", err, meant(f, args))}
	case f.NArg() > 0:
		return usageError{fmt.Errorf("unexpected argument %q", f.Arg(0))}
	case o.as != asInit && o.as != asRun:
		return usageError{fmt.Errorf("--as %q: want %s or %s", o.as, asInit, asRun)}
	}
	return o.render(in, out)
}

// meant ends the error of a flag that does not exist with one that begins alike, if there is one.
func meant(f *pflag.FlagSet, args []string) (meant string) {
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		f.VisitAll(func(flag *pflag.Flag) {
			if strings.HasPrefix(arg, "-") && f.Lookup(name) == nil && name != "" && strings.HasPrefix(flag.Name, name[:min(3, len(name))]) {
				meant = ": did you mean --" + flag.Name + "?"
			}
		})
	}
	return meant
}

// render writes nothing unless it knows everything in the chart.
func (o options) render(in io.Reader, out io.Writer) error {
	release, err := read(in)
	if err != nil {
		return err
	}
	node := o.node(release)
	if len(node.replaced) > 0 {
		err = errors.Join(o.check(release, node), o.write(release, node))
	}
	if err := errors.Join(append(node.causes, err)...); err != nil {
		return err
	}
	return release.write(out)
}
