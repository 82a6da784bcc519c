// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hosttool_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/hosttool"
	"github.com/slipway-dev/slipway/internal/testns"
)

const stranger = 65534

// A program that users other than root may change or exchange is not executed.
func TestSEC11_NothingOfOthersIsExecuted(t *testing.T) {
	testns.Root(t)
	for name, tc := range map[string]struct {
		spoil func(root string) error
		says  string // empty: it is executed
	}{
		"root's":                     {spoil: func(string) error { return nil }},
		"a user's file":              {func(root string) error { return os.Chown(root+"/bin/program", stranger, 0) }, "uid 65534"},
		"a world-writable directory": {func(root string) error { return os.Chmod(root+"/bin", 0o777) }, "mode 0777"},
		"a link to a user's": {func(root string) error {
			return errors.Join(os.Mkdir(root+"/user", 0o755), os.Rename(root+"/bin/program", root+"/user/program"),
				os.Symlink("../user/program", root+"/bin/program"), os.Chown(root+"/user", stranger, 0))
		}, "uid 65534"},
		"a link of a user's": {func(root string) error {
			return errors.Join(os.Rename(root+"/bin", root+"/real"), os.Symlink("real", root+"/bin"), os.Lchown(root+"/bin", stranger, 0))
		}, "uid 65534"},
		"a FIFO": {func(root string) error {
			return errors.Join(os.Remove(root+"/bin/program"), unix.Mkfifo(root+"/bin/program", 0o755))
		}, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "root")
			require.NoError(t, os.MkdirAll(root+"/bin", 0o755))
			program, ran := root+"/bin/program", filepath.Join(t.TempDir(), "ran")
			require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"$0\" >"+ran+"\n"), 0o755))
			require.NoError(t, tc.spoil(root))
			err := hosttool.Command{Path: program, Args: []string{"name"}}.Run(t.Context())
			if tc.says == "" {
				require.NoError(t, err)
				content, err := os.ReadFile(ran)
				require.NoError(t, err)
				require.Equal(t, program+"\n", string(content), "a script finds itself")
				return
			}
			require.ErrorContains(t, err, tc.says)
			require.Equal(t, tc.says != "not a regular file", errors.Is(err, hosttool.ErrUntrusted))
			require.NoFileExists(t, ran)
		})
	}
	require.Error(t, hosttool.Trust("relative"))
}

// A tool in a directory that others may write to is not found, neither by Find nor by other
// tools.
func TestSEC11_AToolWhereOthersMayWriteIsNotFound(t *testing.T) {
	testns.Enter(t, testns.Mount)
	const dir = "/usr/local/bin"
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"))
	tool := func(name, script string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	tool("slipway-test", "echo $PATH")
	found, err := hosttool.Find("slipway-test")
	require.NoError(t, err)
	var path string
	require.NoError(t, found.Run(t.Context(), "", func(line string) { path = line }))
	require.Contains(t, strings.Split(path, ":"), dir)

	require.NoError(t, os.Mkdir(dir+"/root", 0o755))
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err = hosttool.Find("slipway-test")
	require.ErrorIs(t, err, hosttool.ErrUntrusted)
	require.ErrorContains(t, err, "not executed: open "+dir+"/slipway-test: ")
	require.ErrorIs(t, found.Run(t.Context(), "", nil), hosttool.ErrUntrusted, "it is judged each time")

	env, err := hosttool.Find("env")
	require.NoError(t, err)
	require.NoError(t, env.Run(t.Context(), "", func(line string) {
		if value, ok := strings.CutPrefix(line, "PATH="); ok {
			path = value
		}
	}))
	require.NotContains(t, strings.Split(path, ":"), dir)
	require.NotEmpty(t, path)

	_, err = hosttool.Find("slipway-no-such-tool")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// The output of a program that ends before it is read whole is not lost: this process may
// get no processor time for a while, here played by a child that holds the output open.
func TestOutputIsReadAWhileAfterTheEnd(t *testing.T) {
	var out strings.Builder
	c := hosttool.Command{Path: "/bin/sh", Args: []string{"sh", "-c", "(sleep 0.7; echo late) & echo early"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: &out}
	require.NoError(t, c.Run(t.Context()))
	require.Equal(t, "early\nlate\n", out.String())
}
