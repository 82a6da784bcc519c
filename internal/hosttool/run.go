// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hosttool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
)

// ErrUntrusted says that a program is not executed, since others than root and this
// process's user may change it.
var ErrUntrusted = durable.ErrShared

// Trust is an error that matches [ErrUntrusted] if others than root and this process's
// user may change what is executed at path: the file, a directory or a link on the way
// to it, or the folder that it is in, where in a sticky one they could give a program
// of root's another name.
//
// What is judged is what is executed at the same path then, by a thread in the same
// mount namespace, for nobody else can put anything there. So it is executed by its
// path, not as /proc/self/fd/N, where a script does not find itself and which takes a
// /proc that shows this process. Which interpreter and which libraries a program of
// root's loads is its own word.
func Trust(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%q is not an absolute path", path)
	}
	program, err := durable.OpenVetted(nil, path)
	if err != nil {
		return err
	}
	defer program.Close()
	info, err := program.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	return err
}

// waitDelay is for what a program leaves behind to let go of its output.
const waitDelay = time.Second / 2

// Command is one run of a program.
type Command struct {
	Path           string
	Args           []string // the first is the name by which it is called
	Env            []string // nil: none
	Dir            string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Run runs the program, if it is to be trusted, in the namespaces of the calling
// thread, and waits for it. When ctx is done it is killed with all its children.
// Nothing else in the library executes anything.
func (c Command) Run(ctx context.Context) error {
	path, err := filepath.Abs(c.Path)
	if err == nil {
		err = Trust(path)
	}
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Args, cmd.Env, cmd.Dir = c.Args, append([]string{}, c.Env...), c.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.WaitDelay = waitDelay
	killGroup(cmd)
	return cmd.Run()
}

// ExitCode returns the exit code in the error of a Run, or -1 if there is none.
func ExitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}
