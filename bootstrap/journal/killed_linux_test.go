// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// writerEnv makes the test binary change the journal that it names, and print a line for each
// change.
const writerEnv = "SLIPWAY_TEST_JOURNAL_WRITER"

// readerEnv makes the test binary read the journal that it names, and print how much memory
// that took.
const readerEnv = "SLIPWAY_TEST_JOURNAL_READER"

// exampleEnv makes the test binary apply and revert the example's step, forever, on the node
// that it names.
const exampleEnv = "SLIPWAY_TEST_JOURNAL_EXAMPLE"

// change makes the process's n-th change.
func change(j *journal.Journal, n int) error {
	ctx := journal.With(context.Background(), j.Step("s"))
	var all []journal.Entry
	for i := range 1 + n%3 {
		all = append(all, journal.Entry{Kind: "acme/value", Object: fmt.Sprint((n + i) % 7), Before: value("0"), After: value(fmt.Sprint(n))})
	}
	switch n % 5 {
	case 3:
		return j.Forget(ctx, all...)
	case 4:
		_, err := j.ForgetObject(ctx, fmt.Sprint((n-2)%7)) // the change just begun
		return err
	}
	return j.Begin(ctx, all...)
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(readerEnv); dir != "" {
		read(dir)
		return
	}
	if node := os.Getenv(exampleEnv); node != "" {
		applyExample(node)
		return
	}
	dir := os.Getenv(writerEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	j, err := (&journal.Node{Dir: dir, Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
	for n := 0; err == nil && n < 2000; n++ { // bounded, in case the test dies first
		err = change(j, n)
		fmt.Println(n)
	}
	fmt.Println(err)
	os.Exit(1)
}

func read(dir string) {
	debug.SetMemoryLimit(40 << 20) // as in nodeinit
	j, err := (&journal.Node{Dir: dir, Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
	if err == nil {
		_, err = j.Entries()
	}
	status, errStatus := os.ReadFile("/proc/self/status")
	fmt.Println(err, errStatus)
	fmt.Println(regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindStringSubmatch(string(status))[1])
}

// A process killed between changes leaves a journal with those acknowledged and no half of the
// next.
func TestPLAN3_AWriterKilledAtEachRecord(t *testing.T) {
	model := open(t, filepath.Join(t.TempDir(), "state"), journal.Node{})
	var states []string // after each change that a killed process got to
	for at := range 40 {
		dir := filepath.Join(t.TempDir(), "state")
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), writerEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		said := bufio.NewScanner(out)
		for range at + 1 {
			require.True(t, said.Scan())
		}
		time.Sleep(time.Duration(at%8) * time.Millisecond) // into the next change
		require.NoError(t, cmd.Process.Kill())
		acknowledged := at
		for said.Scan() {
			acknowledged++
		}
		require.ErrorContains(t, cmd.Wait(), "signal: killed")
		for len(states) < acknowledged+2 {
			require.NoError(t, change(model, len(states)))
			states = append(states, seen(t, model))
		}
		got := seen(t, open(t, dir, journal.Node{}))
		require.Contains(t, states[acknowledged:acknowledged+2], got, "killed after change %d", acknowledged)
	}
}

// Two processes that change a node without its lock may get errors, but every record
// acknowledged to either exists, and the journal stays readable.
func TestPLAN2_WritersWithoutTheLockDoNotTearTheJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first := open(t, dir, journal.Node{})
	require.NoError(t, first.Begin(step(t, first, "s"), journal.Entry{Kind: "k", Object: "first"}))
	var acknowledged [4][]string
	var all sync.WaitGroup
	for w := range acknowledged {
		j := open(t, dir, journal.Node{}) // its own open file, as in another process
		ctx := step(t, j, "s")
		all.Go(func() {
			for n := range 100 {
				object := fmt.Sprint(w, "-", n)
				if j.Begin(ctx, journal.Entry{Kind: "k", Object: object}) == nil {
					acknowledged[w] = append(acknowledged[w], object)
				}
			}
		})
	}
	all.Wait()
	there := objects(t, open(t, dir, journal.Node{}))
	for _, objects := range acknowledged {
		require.Subset(t, there, objects)
	}
	require.Len(t, there, 1+len(slices.Concat(acknowledged[:]...)))
}
