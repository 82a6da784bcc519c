// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// process is one running server.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	log  string
}

// start runs the binary under the name of its role. Its output is appended to
// a file in dir.
func start(binary, dir, role string, args ...string) (*process, error) {
	log := filepath.Join(dir, role+".log")
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(binary, args...)
	cmd.Args[0] = role
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	dieWithParent(cmd)
	p := &process{cmd: cmd, done: make(chan struct{}), log: log}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the child's parent is this thread: it has to outlive the child
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	return p, nil
}

// end sends the signal and waits; one that does not end within a minute is
// killed. A process that is not running is success.
func (p *process) end(signal os.Signal) {
	if p == nil {
		return
	}
	p.cmd.Process.Signal(signal)
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.cmd.Process.Kill()
		<-p.done
	}
}

func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// tail is the end of the log, for errors.
func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}
