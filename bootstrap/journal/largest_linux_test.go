// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !race

package journal_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// With nodeinit's garbage collection settings, reading the largest journal takes little memory
// beyond the 8 MiB of the process.
func TestSEC6_TheLargestJournalFitsIntoMemory(t *testing.T) {
	dir := t.TempDir()
	records := []string{aHeader}
	size := journal.MaxLive/journal.MaxEntries - len("12345 0123456789abcdef \n")
	for i := range journal.MaxEntries {
		e := fmt.Sprintf(`{"record":"entry","kind":"acme/file","identity":"file /etc/acme/%d","object":"/etc/acme/%[1]d","step":"files","time":"2030-01-01T00:00:00Z","namespace":"mnt:[4026531840]","before":{},"after":{"type":"file","mode":420,"sha256":"%064[1]d","xattrs":{},"target":"`, i)
		end := `"},"done":true}`
		records = append(records, e+strings.Repeat("x", size-len(e)-len(end))+end)
	}
	for range 2 { // and about the largest possible tail
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
