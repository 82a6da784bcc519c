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

// ErrUntrusted is matched if a program is not executed, since users other than root and
// this process's own may change it.
var ErrUntrusted = durable.ErrShared

// Trust returns an error that matches [ErrUntrusted] if users other than root and this
// process's own may change which program is executed at path. That covers the file, a
// directory or a link on the way to it, and its directory: in a sticky one they could give a
// program of root's another name.
//
// A thread in the same mount namespace then executes the vetted program at the same path,
// since no other user can put anything there. So it is executed by its path, not as
// /proc/self/fd/N, where a script does not find itself and which needs a /proc that shows
// this process. The interpreter and libraries that a program of root's loads are trusted
// with it.
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

// waitDelay is how long processes that a program leaves behind may keep its output open.
// It runs by the clock, also while this process gets no processor time, and what it has not
// read until then is lost: half a second was too short on a busy node.
const waitDelay = 5 * time.Second

// Command is one run of a program.
type Command struct {
	Path           string
	Args           []string // the first is the name it is called by
	Env            []string // nil: none
	Dir            string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Run runs the program, if it is trusted, in the namespaces of the calling thread, and
// waits for it. When ctx is done it is killed with all its children. No other code of the
// library executes programs.
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
