// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// This test binary is also the installer that is killed: DIR is the node, PROGRAM an executable.
const dirEnv, programEnv = "SLIPWAY_TEST_DIR", "SLIPWAY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		os.Exit(installOnce())
	}
	os.Exit(m.Run())
}

// fleet is an installation in one of two variants of the same plugins and configuration, chosen
// by version's parity; one plugin is a real program.
func fleet(dir string, program []byte, version int) recorded {
	odd := version%2 == 1
	prog, speaker := slices.Clone(program), script("0.3.1", "1.0.0")
	if odd { // an ELF program ignores trailing bytes
		prog, speaker = append(prog, make([]byte, 12345)...), speaker+"# odd\n"
	}
	return recorded{Install: cniinstall.Install{
		Plugins: fstest.MapFS{"prog": {Data: prog}, "cilium-cni": {Data: []byte(speaker)}},
		BinDir:  filepath.Join(dir, "bin"),
		Config:  agentOf(cniinstall.Agent{Debug: odd, LogFile: "/" + strings.Repeat("long", 2000)}),
		ConfDir: filepath.Join(dir, "net.d"), ConfName: "05-cilium.conflist",
		Optional: []string{"loopback"},
	}}
}

// child starts this binary again as an installer.
func child(t *testing.T, dir, program string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{dirEnv + "=" + dir, programEnv + "=" + program}
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewReader(stdout)
}

// realProgram is a small program of this machine, and its content.
func realProgram(t testing.TB, name string) (string, []byte) {
	path, err := exec.LookPath(name)
	require.NoError(t, err)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return path, raw
}

// fastDir is a temporary folder in memory, if one allows executing programs: thousands of
// fsyncs would only test the disk.
func fastDir(t *testing.T, program string) string {
	dir, err := os.MkdirTemp("/dev/shm", "cniinstall-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	raw, err := os.ReadFile(program)
	require.NoError(t, err)
	probe := filepath.Join(dir, "probe")
	write(t, probe, string(raw), 0o755)
	defer os.Remove(probe)
	if exec.Command(probe).Run() != nil {
		return t.TempDir()
	}
	return dir
}

// installOnce announces that it starts, then installs a version over the present one, with a
// record.
func installOnce() int {
	program, err := os.ReadFile(os.Getenv(programEnv))
	if err != nil {
		return 1
	}
	i := recordedFleet(os.Getenv(dirEnv), program, 1)
	fmt.Println("go")
	start := time.Now()
	if err := i.Apply(background); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(int64(time.Since(start)))
	return 0
}

func recordedFleet(dir string, program []byte, version int) recorded {
	i := fleet(dir, program, version)
	kinds := cniinstall.Uninstall{ConfDir: i.ConfDir}.Kinds()
	book, err := (&ledger.Ledger{Dir: filepath.Join(dir, "state"), Agent: "agent", NoOwner: true, Kinds: kinds}).Open(context.Background())
	if err != nil {
		panic(err)
	}
	i.Book = book
	i.Exclusive = version > 0 // so that the upgrade sets others aside
	return i
}

// waitFor waits for a child and returns the duration it printed, negative if it was killed
// first.
func waitFor(t *testing.T, cmd *exec.Cmd, out *bufio.Reader, dir string) time.Duration {
	t.Helper()
	said, _ := out.ReadString('\n')
	cmd.Wait()
	awaitUnlocked(t, dir)
	took, err := strconv.ParseInt(strings.TrimSpace(said), 10, 64)
	if err != nil {
		return -1
	}
	return time.Duration(took)
}

// Killed at points spread over a first install or an upgrade, and run again every other time:
// the end state is the same, with no temporary file. The undo then restores the node.
func TestCNI1_CNI8_KilledAnywhere(t *testing.T) {
	const points = 12
	path, program := realProgram(t, "true")
	for _, upgrade := range []bool{false, true} {
		took, killed := killedAfter(t, path, program, upgrade, true, -1), 0
		for k := range points {
			if said := killedAfter(t, path, program, upgrade, k%2 == 0, took*time.Duration(k)/points); said < 0 {
				killed++
			} else {
				took = min(took, said) // the machine was busier before
			}
		}
		require.Positive(t, killed)
	}
}

// killedAfter runs an installation in another process and kills it after that time, unless it
// is negative. It returns the duration that the process printed, negative if it was killed first.
func killedAfter(t *testing.T, path string, program []byte, upgrade, again bool, after time.Duration) time.Duration {
	t.Helper()
	dir := t.TempDir() // nothing below /dev is reverted
	old := filepath.Join(dir, "bin", "cilium-cni")
	write(t, old, "original", 0o711)
	if upgrade {
		for _, name := range []string{"00-a.conflist", "10-c.json"} {
			write(t, filepath.Join(dir, "net.d", name), name, 0o640)
		}
	}
	before := tree(t, dir)
	if upgrade {
		first := recordedFleet(dir, program, 0)
		require.NoError(t, first.Apply(t.Context()))
		require.NoError(t, first.Book.Close())
		late := filepath.Join(dir, "net.d", "01-b.conf")
		write(t, late, "new", 0o640)
		before[late] = tree(t, dir)[late]
	}
	cmd, out := child(t, dir, path)
	_, err := out.ReadString('\n')
	require.NoError(t, err)
	if after >= 0 {
		timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
		defer timer.Stop()
	}
	took := waitFor(t, cmd, out, dir)
	i := recordedFleet(dir, program, 1)
	defer i.Book.Close()
	if again {
		require.NoError(t, i.Apply(t.Context())) // it settles what the killed run has begun, and lists it from then on
		requireApplied(t, i, dir)
		requireContent(t, filepath.Join(dir, "bin", "prog"), string(append(slices.Clone(program), make([]byte, 12345)...)), 0o755)
	}
	require.NoError(t, i.Revert(t.Context()))
	now := tree(t, dir)
	requireContent(t, old, "original", 0o711)
	delete(before, old) // it was rewritten
	delete(now, old)
	require.Equal(t, before, now)
	return took
}

// awaitUnlocked waits for programs that a killed writer was just starting: until they exec they
// hold its locks, and files under such a lock count as in use.
func awaitUnlocked(t *testing.T, dir string) {
	t.Helper()
	temps, err := filepath.Glob(filepath.Join(dir, "*", ".slipway-*.tmp"))
	require.NoError(t, err)
	for _, temp := range temps {
		f, err := os.Open(temp)
		require.NoError(t, err)
		for err = syscall.EINTR; err == syscall.EINTR; {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
}
