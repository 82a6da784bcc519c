// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package programs_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/programs"
)

func TestKeptIsMadeOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var made atomic.Int32
	var said lines
	waits := make(chan struct{})
	said.first = func() { close(waits) }
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			dir, err := programs.Kept(t.Context(), &said, "group", "name", func(dir string) error {
				made.Add(1)
				<-waits // another one has come, and says so
				return os.WriteFile(filepath.Join(dir, "file"), []byte("made"), 0o644)
			})
			if err != nil {
				t.Error(err)
				return
			}
			if content, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(content) != "made" {
				t.Errorf("%s: %q, %v", dir, content, err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, made.Load())
	require.Contains(t, said.String(), "waiting for another process that makes ")
}

// lines calls first at the first line.
type lines struct {
	mu    sync.Mutex
	text  bytes.Buffer
	first func()
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len() == 0 {
		l.first()
	}
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestWhatCouldNotBeMadeIsMadeAnew(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	broken := errors.New("broken")
	_, err := programs.Kept(t.Context(), io.Discard, "group", "name", func(dir string) error {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "half"), nil, 0o644))
		return broken
	})
	require.ErrorIs(t, err, broken)
	require.NoError(t, os.MkdirAll(filepath.Join(cache, "slipway/group/name.new/half"), 0o755), "as a killed process leaves it")
	dir, err := programs.Kept(t.Context(), io.Discard, "group", "name", func(string) error { return nil })
	require.NoError(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
	entries, err = os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, entries, 2, "the kept program and its lock")
}

func TestAProgramWithAnAddedFile(t *testing.T) {
	added := map[string]string{"internal/verify/machine/added.go": "package main\n\nfunc init() { println(\"added\"); panic(1) }\n"}
	path, err := programs.Program{Package: "./internal/verify/machine", Added: added}.Build(t.Context())
	require.NoError(t, err)
	out, err := exec.Command(path).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "added\n")
	again, err := programs.Program{Package: "./internal/verify/machine", Added: added}.Build(t.Context())
	require.NoError(t, err)
	require.Equal(t, path, again)
}

func TestAProgramForAnotherArchitecture(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		path, err := programs.Program{Package: "./internal/verify/machine", Arch: arch}.Build(t.Context())
		require.NoError(t, err)
		f, err := elf.Open(path)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, machine, f.Machine)
	}
}

func TestWhatTheGoCommandSaysIsInTheErrorAndInTheLog(t *testing.T) {
	var log bytes.Buffer
	err := programs.Go(t.Context(), &log, t.TempDir(), nil, "build", "./no/such/package")
	require.ErrorContains(t, err, "exit status 1: "+log.String())
	require.NotEmpty(t, log.String())
}
