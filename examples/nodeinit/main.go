// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command nodeinit brings a node to the state that an eBPF CNI agent needs before it
// starts, and undoes all its changes later. `nodeinit apply` replaces a chain of privileged
// init containers, and most other commands one container each, with its flags and
// environment.
//
// It exits with 0 on success, 1 on a failure, 3 if the node has another owner, and 64 on a
// usage error. `nodeinit check`, `nodeinit status` and `nodeinit uninstall --dry-run` exit
// with 2 if something is to be done.
//
// README.md explains how to operate it.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bootstrap/timeline"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/configresolve"
)

// The kernel delivers a signal to the process's main thread if that thread accepts any. If
// it were waiting for a disk or a server that does not answer, the signal would have no
// effect: so the main thread only waits, and other threads work.
func init() { runtime.LockOSThread() }

// enough is memory for the largest inputs, in bytes: when they nearly fill it, garbage is
// collected before the heap has doubled. With the program's own pages it is below the
// 64 MiB that an init container is often given.
const enough = 40 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(enough)
	}
	end := make(chan func() int)
	go func() { end <- run() }()
	os.Exit((<-end)())
}

// run returns what remains to be done, on the main thread: a signal that this thread
// handles is complete before it executes a command.
func run() (end func() int) {
	surviveClosedPipes()
	out := &output{w: os.Stdout}
	a := &app{stdout: bootstrap.Printable(out), stderr: bootstrap.Printable(os.Stderr), shell: out, getenv: os.LookupEnv}
	if term.IsTerminal(int(os.Stdout.Fd())) {
		width, _, _ := term.GetSize(int(os.Stdout.Fd())) // 0 where it does not say
		a.width = cmp.Or(width, columns)
	}
	a.ends.Store(true)
	ctx, stop := a.untilTold()
	code := a.run(ctx, os.Args[1:])
	stop()
	if err := out.failed(); err != nil && (code == 0 || code == exitChanges) {
		a.printError(err)
		code = exitError
	}
	if code != 0 || a.next == nil {
		return func() int { return code }
	}
	return func() int {
		a.printError(a.next())
		return exitError
	}
}

// The exit statuses that mean more than success and failure.
const (
	exitError   = 1
	exitChanges = 2
	exitOthers  = 3  // the node has another owner
	exitUsage   = 64 // EX_USAGE of sysexits(3)
)

// errChanges makes a dry run exit with its own status.
var errChanges = errors.New("there is something to do")

// usageError is a command line, a variable or a configuration file that
// cannot be understood.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// didYouMean ends an error with the known name that may be meant by the typed one, if any is
// similar.
func didYouMean(typed string, known []string) string {
	meant := configresolve.Nearest(typed, known)
	if meant == "" && typed != "" {
		if i := slices.IndexFunc(known, func(name string) bool { return strings.HasPrefix(name, typed) }); i >= 0 {
			meant = known[i]
		}
	}
	if meant == "" {
		return ""
	}
	return ": did you mean " + meant + "?"
}

// app is one run of the program, with its environment.
type app struct {
	stdout, stderr io.Writer // which escape control characters of terminals
	width          int       // of standard output in columns, if that is a terminal
	shell          io.Writer // standard output as it is, for completion alone
	getenv         func(string) (string, bool)
	cleanups       []func()          // to be called when the command has ended
	groups         []group           // the table of flags
	args           []string          // the command line
	begun          bool              // it has been understood
	name           string            // of the command
	row            command           // it
	shown          bool              // the one document has been printed
	remembers      *ledger.Ledger    // nil: not yet, or nothing is recorded
	book           *ledger.Book      // it, open to be asked; nil: not yet
	ran            *bootstrap.Report // of the run, when there was one
	at             position          // where it is
	ends           atomic.Bool       // the process ends soon after it is asked to, in any case
	gaveUp         atomic.Bool       // and says so, once
	timeline       timeline.Recorder
	reviewed       *cleanup.Removals // to remove; nil: all that is found
	access         answered          // what may not be done in the cluster, for a check
	next           func() error      // what this process becomes when the command has succeeded
	binDirs        []string          // that search has found
	confDirs       []string
	unlisted       error  // of sandboxes
	staysReady     string // the runtime may, without a configuration in this directory
	preflight      bool
	prefixed       bool // the CNI directories are below a prefix, where the runtime does not know them
	options
}

func (a *app) run(ctx context.Context, args []string) int {
	a.args = args
	root := a.program()
	root.SetArgs(args)
	root.SetOut(a.stdout)
	if len(args) > 0 && (args[0] == "completion" || strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)) {
		root.SetOut(a.shell) // a shell reads it, tabs and all; it contains no text from outside
	}
	root.SetErr(a.stderr)
	root.InitDefaultCompletionCmd(args...) // once it is known where to
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.RunE, c.Args = root.RunE, refused("unknown shell %[1]q: must be one of %[2]s")
	}
	stop := a.endWith(ctx)
	cmd, err := root.ExecuteContextC(bootstrap.WithTrace(ctx, a.waits()))
	stop()
	for _, f := range a.cleanups {
		f()
	}
	var wrong usageError
	if errors.As(err, &wrong) {
		err = wrong
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errChanges):
		return exitChanges
	case wrong.error != nil, !a.begun && !errors.As(err, new(*os.PathError)): // else it cannot be written
		a.printError(err)
		a.printErrorLine("see "+cmd.CommandPath()+" --help", "")
		return exitUsage
	}
	if a.output == formatJSON && !a.shown {
		report := &bootstrap.Report{Results: []bootstrap.Result{{Step: cmd.Name(), Status: bootstrap.Failed, Err: err}}}
		err = errors.Join(err, a.writeJSON(report))
	}
	if a.shown && a.width == 0 {
		time.Sleep(pipesRead)
	}
	if ctx.Err() == nil {
		err = errors.Join(append([]error{err}, a.hints(cmd, err)...)...)
	}
	a.printError(err)
	if errors.Is(err, ledger.ErrNotOwner) || errors.Is(err, ledger.ErrRevoked) {
		return exitOthers
	}
	return exitError
}

// printError prints the failures, one line each. A pod's status has the end of that, so a
// longer text ends with a line that fits.
func (a *app) printError(err error) {
	size := 0
	all := flatten(err)
	for _, err := range all {
		size += a.printErrorLine(bootstrap.OneLine(err.Error()), ownCode(err))
	}
	if size > fitsStatus {
		first := bootstrap.OneLine(all[0].Error())
		if len(first) > fitsStatus/2 {
			first = strings.ToValidUTF8(first[:fitsStatus/2], "") + "..."
		}
		a.printErrorLine(fmt.Sprintf("failed; the whole error is above, and begins with: %s", first), ownCode(all[0]))
	}
}

// pipesRead is the time that a container runtime gets to read standard output, which is a
// pipe of its own: so the error comes last in the pod's log.
const pipesRead = 20 * time.Millisecond

// fitsStatus is how many bytes of a log the kubelet uses as the message of a failed
// container (terminationMessagePolicy: FallbackToLogsOnError).
const fitsStatus = 2048

// ownCode returns the code of an error, or "" for the general one, which adds nothing.
func ownCode(err error) string {
	if errors.As(err, new(usageError)) || bootstrap.Code(err) == "plan.failed" {
		return ""
	}
	return bootstrap.Code(err)
}

// printErrorLine prints a line, and the code of its error, if it has one.
func (a *app) printErrorLine(line, code string) (size int) {
	if a.logFormat == formatJSON {
		var attrs []any
		if code != "" {
			attrs = append(attrs, "code", code)
		}
		a.logger().Error(line, attrs...)
	} else {
		if code != "" {
			line += " [" + code + "]"
		}
		fmt.Fprintf(a.stderr, "nodeinit: %s\n", line)
	}
	return len("nodeinit: \n") + len(line)
}

var typeOfJoined = reflect.TypeOf(errors.Join(io.EOF))

// flatten takes joined errors apart, and names the step for each part.
func flatten(err error) []error {
	joined, isTree := err.(interface{ Unwrap() []error })
	if isTree && (reflect.TypeOf(err) == typeOfJoined || len(joined.Unwrap()) == 1) {
		var all []error
		for _, err := range joined.Unwrap() {
			all = append(all, flatten(err)...)
		}
		return all
	}
	if step, ok := err.(*bootstrap.StepError); ok {
		var all []error
		for _, err := range flatten(step.Err) {
			all = append(all, &bootstrap.StepError{Step: step.Step, Op: step.Op, Err: err})
		}
		return all
	}
	return []error{err}
}

// program returns the whole program.
func (a *app) program() *cobra.Command {
	root := &cobra.Command{
		Use:   "nodeinit",
		Short: "Prepare a node for an eBPF CNI agent, and undo it all",
		Example: `
nodeinit check      # what apply would change, with its flags
nodeinit apply      # change it, and look again
nodeinit status     # the last run, and what is recorded
nodeinit uninstall  # restore the node as it was
nodeinit apply --help
sudo nodeinit demo`,
		Version:               version(),
		DisableFlagsInUseLine: true,
		SilenceErrors:         true,
		SilenceUsage:          true,
		Args:                  refused("unknown command %[1]q"),
		RunE:                  func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE:     a.begin,
	}
	root.Flags().Bool("version", false, "print the version") // cobra's own would be -v, too
	root.SetFlagErrorFunc(a.unknownFlag)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { fmt.Fprint(c.OutOrStdout(), a.help(c)) })
	a.groups = a.table()
	a.register(root, root.PersistentFlags(), true)
	for _, row := range a.commandTable() {
		root.AddCommand(a.cobra(row))
	}
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Args = func(_ *cobra.Command, args []string) error {
		of, rest, _ := root.Find(args)
		if len(rest) == 0 {
			return nil
		}
		return of.ValidateArgs(rest)
	}
	return root
}

// refused is for a command that has others, none of which the arguments name. The format is for
// the argument, and for the list of these.
func refused(format string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var known []string
		for _, sub := range c.Commands() {
			known = append(known, sub.Name())
		}
		return fmt.Errorf(format+"%[3]s", args[0], strings.Join(known, ", "), didYouMean(args[0], known))
	}
}

// inTime returns a context that ends, and the process soon after it, when --timeout is over.
func (a *app) inTime(ctx context.Context) (limited context.Context, stop func()) {
	if a.timeout == 0 {
		return ctx, func() {}
	}
	limited, cancel := context.WithTimeoutCause(ctx, a.timeout, fmt.Errorf("--timeout of %s is over", a.timeout))
	keep := a.endWith(limited)
	return limited, func() { keep(); cancel() }
}

// unknownFlag adds the flag that may be meant by one that the command does not have.
func (a *app) unknownFlag(c *cobra.Command, err error) error {
	var known []string
	for _, f := range a.flagsOf(c.Name()) {
		known = append(known, "--"+f.name)
	}
	for _, arg := range a.args {
		flag, _, _ := strings.Cut(arg, "=")
		if name, isLong := strings.CutPrefix(flag, "--"); isLong && name != "" && c.Flag(name) == nil {
			return fmt.Errorf("%w%s", err, didYouMean(flag, known))
		}
		if flag == "-o" && slices.Contains(known, "--output") { // as of kubectl; it is another flag of cleanup
			return fmt.Errorf("%w: did you mean --output?", err)
		}
	}
	return err
}

// hints are the flags that end the errors: those of the command, or else another command's.
func (a *app) hints(c *cobra.Command, err error) (hints []error) {
	for _, code := range causes(err) {
		own, others := []error{}, []error{}
		for _, f := range a.rows() {
			switch on := strings.Fields(f.on); {
			case !slices.Contains(strings.Fields(f.helps), code):
			case f.shows(c):
				own = append(own, fmt.Errorf("--%s: %s", f.name, f.help))
			case len(on) > 0:
				others = append(others, fmt.Errorf("nodeinit %s --%s: %s", on[0], f.name, f.help))
			}
		}
		if len(own) == 0 {
			own = others
		}
		own = slices.DeleteFunc(own, func(hint error) bool { return strings.Contains(fmt.Sprint(hints), hint.Error()) })
		hints = append(hints, own...)
	}
	return hints
}

// causes are the codes of the parts of an error, and the failed steps.
func causes(err error) (all []string) {
	for _, part := range flatten(err) {
		all = append(all, bootstrap.Code(part))
		var step *bootstrap.StepError
		if errors.As(part, &step) {
			all = append(all, step.Step)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
