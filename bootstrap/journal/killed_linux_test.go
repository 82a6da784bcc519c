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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// writerEnv makes the test binary a process that changes the journal that it names, and
// prints a line for each change.
const writerEnv = "SLIPWAY_TEST_JOURNAL_WRITER"

// readerEnv makes the test binary a process that reads the journal that it names, and
// prints how much memory that took.
const readerEnv = "SLIPWAY_TEST_JOURNAL_READER"

// change is the number n of the changes that the process makes.
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
		_, err := j.ForgetObject(ctx, fmt.Sprint((n-2)%7)) // which was just begun
		return err
	}
	return j.Begin(ctx, all...)
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(readerEnv); dir != "" {
		read(dir)
		return
	}
	dir := os.Getenv(writerEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	j, err := (&journal.Node{Dir: dir, Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
	for n := 0; err == nil && n < 2000; n++ { // should the test die first
		err = change(j, n)
		fmt.Println(n)
	}
	fmt.Println(err)
	os.Exit(1)
}

func read(dir string) {
	debug.SetMemoryLimit(40 << 20) // as nodeinit has it
	j, err := (&journal.Node{Dir: dir, Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
	if err == nil {
		_, err = j.Entries()
	}
	status, errStatus := os.ReadFile("/proc/self/status")
	fmt.Println(err, errStatus)
	fmt.Println(regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindStringSubmatch(string(status))[1])
}

// The largest journal is read in little memory by who collects garbage as nodeinit does: a
// process of 8 MiB without it.
func TestSEC6_TheLargestJournalFitsIntoMemory(t *testing.T) {
	dir := t.TempDir()
	records := []string{aHeader}
	size := journal.MaxLive/journal.MaxEntries - len("12345 0123456789abcdef \n")
	for i := range journal.MaxEntries {
		e := fmt.Sprintf(`{"record":"entry","kind":"acme/file","identity":"file /etc/acme/%d","object":"/etc/acme/%[1]d","step":"files","time":"2030-01-01T00:00:00Z","namespace":"mnt:[4026531840]","before":{},"after":{"type":"file","mode":420,"sha256":"%064[1]d","xattrs":{},"target":"`, i)
		end := `"},"done":true}`
		records = append(records, e+strings.Repeat("x", size-len(e)-len(end))+end)
	}
	for range 2 { // and about as much as can be appended to it
		records = append(records, records[1:journal.MaxEntries+1]...)
	}
	content := file(records...)
	require.Less(t, len(content), journal.MaxJournal)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "agent.journal"), content, 0o600))
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), readerEnv+"="+dir)
	out, err := cmd.Output()
	require.NoError(t, err)
	said := strings.Fields(string(out))
	require.Equal(t, []string{"<nil>", "<nil>"}, said[:2])
	memory, err := strconv.Atoi(said[2])
	require.NoError(t, err)
	t.Logf("%d bytes, %d KiB", len(content), memory)
	require.Less(t, memory, 64<<10)
}

// Killed while it makes one change after another, a process leaves a journal with those
// that were acknowledged, and no half of the next ones.
func TestPLAN3_AWriterKilledAtEachRecord(t *testing.T) {
	model := open(t, filepath.Join(t.TempDir(), "state"), journal.Node{})
	var states []string
	for n := range 70 {
		require.NoError(t, change(model, n))
		states = append(states, seen(t, model))
	}
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
		time.Sleep(time.Duration(at%8) * time.Millisecond) // to somewhere in the next one
		require.NoError(t, cmd.Process.Kill())
		acknowledged := at
		for said.Scan() {
			acknowledged++
		}
		require.ErrorContains(t, cmd.Wait(), "signal: killed")
		got := seen(t, open(t, dir, journal.Node{}))
		require.Contains(t, states[acknowledged:acknowledged+2], got, "killed after change %d", acknowledged)
	}
}
