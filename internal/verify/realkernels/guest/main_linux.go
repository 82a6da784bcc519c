// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/testns"
)

//go:embed parts
var parts embed.FS

func main() {
	var err error
	switch filepath.Base(os.Args[0]) {
	case "go":
		err = standIn(os.Args[1:])
	case "refuse":
		err = refuse(os.Args[1:])
	default:
		err = machine()
		unix.Sync()
		time.Sleep(100 * time.Millisecond) // the console lags
		err = errors.Join(err, unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

// machine runs the virtual machine up to its end.
func machine() error {
	options, err := prepare()
	if err != nil {
		fmt.Println("@@ERROR", err)
		return err
	}
	var name unix.Utsname
	_ = unix.Uname(&name)
	fmt.Println("@@LINUX", unix.ByteSliceToString(name.Release[:]), unix.ByteSliceToString(name.Version[:]))
	for _, part := range strings.Split(options["run"], ",") {
		if part == "tests" {
			err = errors.Join(err, tests(strings.Split(options["packages"], ","), options["skip"]))
			continue
		}
		script, readErr := parts.ReadFile("parts/" + part + ".sh")
		common, commonErr := parts.ReadFile("parts/common.sh")
		if err = errors.Join(err, readErr, commonErr); err == nil {
			run(part, exec.Command("sh", "-euc", string(common)+string(script), part))
		}
	}
	if err != nil {
		fmt.Println("@@ERROR", err)
		return err
	}
	fmt.Println("@@ENDED")
	return nil
}

// run runs one program, and meanwhile reaps other processes that end, as pid 1 does.
func run(name string, cmd *exec.Cmd) {
	fmt.Println("@@BEGIN", name)
	begin := time.Now()
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	status := 127
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
	} else {
		status = wait(cmd.Process.Pid)
	}
	if status != 0 {
		printWarnings()
	}
	fmt.Printf("\n@@END %s %d %.1f\n", name, status, time.Since(begin).Seconds())
}

// printWarnings prints the kernel's last warnings, such as a process that it killed for
// its memory, one per line with the prefix "kernel: ".
func printWarnings() {
	const readAll, worst, most = 3, 4, 20 // SYSLOG_ACTION_READ_ALL, LOG_WARNING
	buf := make([]byte, 1<<20)
	n, err := unix.Klogctl(readAll, buf)
	if err != nil {
		fmt.Println("kernel: its messages cannot be read:", err)
		return
	}
	var warnings []string
	for line := range strings.Lines(string(buf[:n])) {
		var level int
		if _, err := fmt.Sscanf(line, "<%d>", &level); err == nil && level&7 <= worst {
			warnings = append(warnings, line)
		}
	}
	for _, line := range warnings[max(0, len(warnings)-most):] {
		fmt.Print("kernel: ", line)
	}
}

func wait(pid int) int {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR) || err == nil && ended != pid:
			continue
		case err != nil:
			return 127
		case status.Signaled():
			return 128 + int(status.Signal())
		}
		return status.ExitStatus()
	}
}

// The tests at the root that look at more than sources, which are the same on every
// kernel.
const ofTheNode = "TestSentinels|TestWhatWasNotGiven|TestNoZeroValue"

// compiling are packages whose tests compile, which is the same on every kernel, and takes
// a compiler.
var compiling = []string{"internal/verify/programs"}

// tests runs each package's tests in its directory, if its name has one of the
// prefixes: all but those that match skip.
func tests(prefixes []string, skip string) error {
	order, err := os.ReadFile("/t/tests/order")
	if err == nil {
		err = exec.Command("modprobe", "-a", "tun", "loop").Run() // their devices appear in /dev only then
	}
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(order)) {
		if slices.Contains(compiling, name) {
			continue
		}
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		chosen := ""
		if name == "." {
			chosen = ofTheNode
		}
		args := []string{"2400", "/t/tests/" + name + "/test", "-test.v", "-test.short", "-test.timeout", "39m", "-test.skip", skip, "-test.run", chosen}
		cmd := exec.Command("timeout", args...)
		cmd.Dir = filepath.Join("/t/src", name)
		cmd.Env = append(os.Environ(), "PATH=/t/go:"+os.Getenv("PATH"), "PWD="+cmd.Dir, testns.RequireEnv+"=1", testns.OwnKernelEnv+"=1")
		run("tests/"+name, cmd)
	}
	return nil
}

// standIn does what tests need from the go command.
func standIn(args []string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	built, out := filepath.Base(dir), ""
	for i, arg := range args[:max(0, len(args)-1)] {
		switch arg {
		case "-overlay":
			built = "nodeinit-locked"
		case "-o":
			out = args[i+1]
		}
	}
	switch args[0] {
	case "env":
		fmt.Println("/t/src/go.mod")
		return nil
	case "mod", "vet":
		return nil
	}
	data, err := os.ReadFile("/t/bin/" + built)
	if err != nil || args[0] != "build" || out == "" {
		return errors.Join(fmt.Errorf("go %s in %s: there is no go command here", strings.Join(args, " "), dir), err)
	}
	return os.WriteFile(out, data, 0o755)
}

// refuse becomes a program that can only use mount(2).
func refuse(args []string) error {
	runtime.LockOSThread()
	path, err := exec.LookPath(args[0])
	if err == nil {
		err = testns.Refuse(unix.EPERM, testns.NewMountCalls()...)
	}
	if err == nil {
		err = unix.Exec(path, args, os.Environ())
	}
	return err
}
