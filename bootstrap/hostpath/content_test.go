// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// on is a plan with this step, on a node whose ledger is in a directory.
func on(dir string, w ledger.Wanter) *bootstrap.Plan {
	return &bootstrap.Plan{
		Host:   hostns.Host{LockFile: filepath.Join(dir, "lock")},
		Ledger: &ledger.Ledger{Dir: filepath.Join(dir, "state"), Agent: "agent", NoOwner: true},
		Steps:  []bootstrap.Step{{Name: "file", Wants: w}},
		Diff:   udiff.Unified,
	}
}

func changed(t *testing.T, plan *bootstrap.Plan) []string {
	t.Helper()
	report, err := plan.Apply(t.Context())
	require.NoError(t, err)
	return report.Results[0].Changes
}

func TestHP3_AFileWithContent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "etc/acme/conf")
	c := hostpath.Content{Path: path, Bytes: []byte("one"), Parents: true}
	require.Equal(t, []string{"make directory " + dir + "/etc", "make directory " + dir + "/etc/acme", "write file " + path}, changed(t, on(dir, c)))
	require.Empty(t, changed(t, on(dir, c)))
	c.Bytes = []byte("another")
	require.Equal(t, []string{"replace file " + path}, changed(t, on(dir, c)))
	c.Mode = 0o644
	setMode := fmt.Sprintf("set mode 0644 and owner %d:%d of file %s", os.Geteuid(), os.Getegid(), path)
	require.Equal(t, []string{setMode}, changed(t, on(dir, c)))
	require.NoError(t, os.Chmod(path, 0o666))
	require.Equal(t, []string{setMode}, changed(t, on(dir, c)))
	requireMode(t, path, 0o644)
	_, err := on(dir, c).Uninstall(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, dir+"/etc")
	require.NoDirExists(t, dir+"/state")
}

// Check warns that the secret a file replaces is not kept; the content appears nowhere.
func TestHP3_ASecretIsShownNowhere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte("their token"), 0o644))
	c := hostpath.Content{Path: path, Bytes: []byte("our token"), Secret: true}
	notKept := path + " will not come back as it is: no copy of what it replaces is kept, as asked"
	for _, run := range []func(context.Context) (*bootstrap.Report, error){
		on(dir, c).Check, on(dir, c).Apply, on(dir, c).Apply, on(dir, c).CheckUninstall, on(dir, c).Uninstall,
	} {
		report, err := run(t.Context())
		require.NoError(t, err)
		switch report.Op {
		case "check-revert", "revert":
			require.Equal(t, []string{"remove file " + path}, report.Results[0].Changes)
		default:
			if report.Results[0].Status != bootstrap.Unchanged {
				require.Equal(t, []string{"replace file " + path}, report.Results[0].Changes)
			}
			if report.Op == "check" {
				require.Equal(t, []string{notKept}, report.Results[0].Advice)
				require.Contains(t, report.Results[0].Diff, "new mode 0600")
				require.Contains(t, report.Results[0].Diff, "--- "+path+"\n+++ "+path+"\nThe content is not shown: it is secret\n")
			}
		}
		text, err := report.MarshalJSON()
		require.NoError(t, err)
		require.NotContains(t, string(text), "token")
	}
	require.NoFileExists(t, path)

	c.Bytes = []byte("our token")
	require.Equal(t, []string{"write file " + path}, changed(t, on(dir, c)))
	c.Bytes = []byte("our next token")
	require.Equal(t, []string{"replace file " + path}, changed(t, on(dir, c)), "that is ours")
	require.NoError(t, filepath.WalkDir(dir+"/state", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			content, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NotContains(t, string(content), "token")
		}
		return err
	}))
}

// A refreshed content is no difference, a changed want is one, and a revert removes the file
// whatever its content.
func TestHP3_AFileThatTheAgentRewritesIsNoDriftAndGoesAtRevert(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	refresh := func() { require.NoError(t, os.WriteFile(path, []byte("refreshed"), 0o600)) }
	require.NoError(t, os.WriteFile(path, []byte("of an older installation"), 0o600))
	c := hostpath.Content{Path: path, Bytes: []byte("for server one"), Rewritten: true, Secret: true}
	require.NotEmpty(t, changed(t, on(dir, c)))
	for range 2 {
		refresh()
		require.Empty(t, changed(t, on(dir, c)))
	}
	c.Bytes = []byte("for server two")
	require.Equal(t, []string{"replace file " + path}, changed(t, on(dir, c)))
	refresh()
	require.Empty(t, changed(t, on(dir, c)))
	require.NoError(t, os.Remove(path))
	require.Equal(t, []string{"write file " + path}, changed(t, on(dir, c)))
	refresh()
	_, err := on(dir, c).Uninstall(t.Context())
	require.NoError(t, err)
	require.NoFileExists(t, path)

	refresh() // without a ledger, the writer is unknown
	require.Equal(t, []string{"replace file " + path}, testledger.Changes(t, testledger.Step{Wanter: c}))
}

func TestHP3_Refuses(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(dir+"/dir", 0o755))
	require.NoError(t, os.WriteFile(dir+"/file", nil, 0o600))
	before := names(t, dir)
	for name, tc := range map[string]struct {
		path    string
		parents bool
		want    string
		code    string
	}{
		"a directory":        {dir + "/dir", false, dir + "/dir is a Directory, and must be a File: move it away", code.HostpathWrongType},
		"a device":           {os.DevNull, false, "below /dev", ""},
		"no directory":       {dir + "/missing/x", false, "directory " + dir + "/missing does not exist; make it in an earlier step, or set Parents", code.HostpathMissing},
		"a file above":       {dir + "/file/x", false, "/file is a File, and must be a Directory", code.HostpathWrongType},
		"a file above those": {dir + "/file/x/y", true, "not a directory", code.HostpathWrongType},
	} {
		c := hostpath.Content{Path: tc.path, Bytes: []byte("x"), Parents: tc.parents}
		_, err := ledger.Check(t.Context(), c)
		require.ErrorContains(t, err, tc.want, name)
		err = ledger.Apply(t.Context(), c)
		require.ErrorContains(t, err, tc.want, name)
		require.ErrorContains(t, err, tc.path, name)
		require.Equal(t, tc.code, code.Of(err), name)
		require.Equal(t, before, names(t, dir), name)
	}
}

func TestHP3_FieldsAreValidated(t *testing.T) {
	text := []byte("x")
	for want, c := range map[string]hostpath.Content{
		"is not absolute":                       {Path: "conf", Bytes: text},
		`has a ".." in it`:                      {Path: "/etc/../conf", Bytes: text},
		"not an absolute, clean path":           {Path: "/", Bytes: text},
		"below /proc":                           {Path: "/proc/sys/kernel/core_pattern", Bytes: text},
		"below /sys":                            {Path: "/sys/power/state", Bytes: text},
		"is never replaced":                     {Path: "/run/xtables.lock", Bytes: text},
		"no content is given: set Bytes":        {Path: "/etc/conf"},
		"more than permission bits":             {Path: "/etc/conf", Bytes: text, Mode: 0o755 | fs.ModeSetuid},
		"owner -1:0 is not a user and group ID": {Path: "/etc/conf", Bytes: text, UID: -1},
	} {
		_, err := ledger.Check(t.Context(), c)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, ledger.Apply(t.Context(), c), want)
	}
}

func TestPLAN15_AFileIsAdoptedAndADirectoryIsNot(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "run")
	file := filepath.Join(dir, "config")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	p := on(root, hostpath.Paths{{Path: dir, Type: "DirectoryOrCreate"}, {Path: file, Type: "FileOrCreate"}})
	p.Ledger.Adopt = true
	report, err := p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Unchanged, report.Results[0].Status, "an empty file may be any agent's")
	p.Steps[0].Wants = hostpath.Content{Path: file, Bytes: []byte("x")}
	report, err = p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{file}, report.Results[0].Adopted)
	_, err = p.Uninstall(t.Context())
	require.NoError(t, err)
	require.NoFileExists(t, file)
	require.DirExists(t, dir)
}

// The files are read for each run. What is wrong with them stops no other step, and leaves the
// kubeconfig as it is.
func TestHP3_AKubeconfigHasTheTokenOfNow(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return filepath.Join(dir, name)
	}
	const ca = "-----BEGIN CERTIFICATE-----\n"
	k := hostpath.Kubeconfig{
		Path: filepath.Join(dir, "net.d/kubeconfig"), Server: "https://[fd00::1]:443", CAFile: write("ca", ca), TokenFile: write("token", "one\n"),
	}
	plan := on(dir, nil)
	plan.Steps = []bootstrap.Step{
		{Name: "kubeconfig", Prepare: k.Prepare}, {Name: "file", Wants: hostpath.Content{Path: dir + "/file", Bytes: []byte{}}},
	}
	holds := func(token string) {
		text, err := os.ReadFile(k.Path)
		require.NoError(t, err)
		require.JSONEq(t, `{"apiVersion": "v1", "kind": "Config", "current-context": "agent",
			"clusters": [{"name": "cluster", "cluster": {"server": "https://[fd00::1]:443", "certificate-authority-data": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="}}],
			"users": [{"name": "agent", "user": {"token": "`+token+`"}}],
			"contexts": [{"name": "agent", "context": {"cluster": "cluster", "user": "agent"}}]}`, string(text))
		requireMode(t, k.Path, 0o600)
	}
	require.Len(t, changed(t, plan), 2)
	holds("one")
	require.Empty(t, changed(t, plan))
	write("token", "two")
	report, err := plan.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, "--- "+k.Path+"\n+++ "+k.Path+"\nThe content is not shown: it is secret\n", report.Results[0].Diff)
	require.Len(t, changed(t, plan), 1)
	holds("two")
	state, err := os.ReadFile(filepath.Join(dir, "state/ledger"))
	require.NoError(t, err)
	require.NotContains(t, string(state), "two", "no token is stored")

	for name, tc := range map[string]struct {
		with hostpath.Kubeconfig
		want string
	}{
		"no server":               {hostpath.Kubeconfig{}, `its server is "": want https://HOST:PORT`},
		"no host":                 {hostpath.Kubeconfig{Server: "https://:443"}, `its server is "https://:443"`},
		"no port":                 {hostpath.Kubeconfig{Server: "https://10.0.0.1:"}, `its server is "https://10.0.0.1:"`},
		"no TLS":                  {hostpath.Kubeconfig{Server: "http://a:80"}, "as a token goes to no other"},
		"no token":                {hostpath.Kubeconfig{Server: k.Server}, "no token that plugins could use: give TokenFile"},
		"an empty token":          {hostpath.Kubeconfig{Server: k.Server, TokenFile: write("empty", " \n")}, "no token that plugins could use"},
		"no such token":           {hostpath.Kubeconfig{Server: k.Server, TokenFile: dir + "/none"}, "no such file"},
		"half a CA":               {hostpath.Kubeconfig{Server: k.Server, TokenFile: k.TokenFile, CAFile: write("half", ca[:9])}, "its CA has no certificate in PEM"},
		"a token that never ends": {hostpath.Kubeconfig{Server: k.Server, TokenFile: "/dev/zero"}, "not a regular file"},
	} {
		tc.with.Path = k.Path
		plan.Steps[0].Prepare = tc.with.Prepare
		require.NoError(t, os.RemoveAll(dir+"/file"))
		_, err := plan.Apply(t.Context())
		require.ErrorContains(t, err, tc.want, name)
		require.FileExists(t, dir+"/file", "the other step goes on")
		holds("two")
	}
	_, err = plan.Uninstall(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Dir(k.Path))
}
