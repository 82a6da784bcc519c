// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// olderEnv names a checkout of an older version, of which this one can read the ledger.
const olderEnv = "SLIPWAY_E2E_OLDER"

// olderNodeinit builds the command of an older version: of the checkout that is given or,
// without, of the commit before the ledger's records last got other fields.
func olderNodeinit(t *testing.T) []byte {
	t.Helper()
	path, version := "", os.Getenv(olderEnv)
	if version != "" {
		path = filepath.Join(t.TempDir(), "nodeinit")
		require.NoError(t, buildNodeinit(t.Context(), version, path))
	} else {
		version = olderCommit(t)
		dir, err := programs.Kept(t.Context(), os.Stderr, "older", version+"-"+runtime.GOARCH, func(dir string) error {
			return buildCommit(t.Context(), version, dir)
		})
		require.NoError(t, err)
		path = filepath.Join(dir, "nodeinit")
	}
	t.Log("the older version is that of", version)
	program, err := os.ReadFile(path)
	require.NoError(t, err)
	return program
}

func buildNodeinit(ctx context.Context, checkout, path string) error {
	return programs.Go(ctx, os.Stderr, filepath.Join(checkout, "examples/nodeinit"), nil, "build", "-ldflags=-s -w", "-o", path, ".")
}

// buildCommit builds nodeinit into dir, as the commit has it.
func buildCommit(ctx context.Context, commit, dir string) error {
	sources, err := os.MkdirTemp("", "older")
	if err != nil {
		return err
	}
	defer os.RemoveAll(sources)
	archive := filepath.Join(sources, "archive.tar")
	if _, err := git(ctx, "archive", "--output="+archive, commit); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "tar", "-xf", archive, "-C", sources).CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w: %s", commit, err, out)
	}
	return buildNodeinit(ctx, sources, filepath.Join(dir, "nodeinit"))
}

// olderCommit looks for the last commit that has changed a field of the ledger's records, and
// returns the one before it. The history of a shallow clone has none.
func olderCommit(t *testing.T) string {
	t.Helper()
	const ledger, tests = "bootstrap/ledger/*.go", ":!bootstrap/ledger/*_test.go"
	changed, err := git(t.Context(), "log", "-1", "--first-parent", "--format=%H", `-Gjson:"[a-z_,]+"`, "--", ledger, tests)
	older := strings.TrimSpace(changed) + "^"
	if err == nil && changed != "" { // it must be one that has a ledger
		_, err = git(t.Context(), "grep", "-q", "bootstrap/ledger", older, "--", "examples/nodeinit")
	}
	if err != nil || changed == "" {
		testns.Skip(t, fmt.Sprintf("there is no history to take an older version of, and %s gives none: %v", olderEnv, err))
	}
	commit, err := git(t.Context(), "rev-parse", older)
	require.NoError(t, err)
	return strings.TrimSpace(commit)
}

func git(ctx context.Context, args ...string) (string, error) {
	root, err := programs.Root()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", cmd, err)
	}
	return string(out), nil
}

// Two agents share the records of a node on which each run is of this version or of the older one, whoever
// applied, updated and undoes them: both versions find each agent as it was applied, and in the end
// the node is as before, of which no run has lost a record. It needs no cluster.
func TestPLAN11_PLAN14_TwoVersionsAndTwoAgentsTakeTurns(t *testing.T) {
	work := t.TempDir()
	versions := []string{filepath.Join(work, "older"), filepath.Join(work, "newer")}
	newer, err := build(t.Context(), "examples/nodeinit")
	require.NoError(t, err)
	for i, program := range [][]byte{olderNodeinit(t), newer} {
		require.NoError(t, os.WriteFile(versions[i], program, 0o755))
	}
	for _, agent := range []string{"first", "second"} {
		require.NoError(t, os.Mkdir(filepath.Join(work, agent), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(work, agent+".conflist"), []byte(`{"cniVersion":"1.0.0","name":"`+agent+`","plugins":[{"type":"`+agent+`"}]}`), 0o644))
		for _, plugin := range []string{agent, "loopback"} { // which both bring
			require.NoError(t, os.WriteFile(filepath.Join(work, agent, plugin), []byte("#!/bin/sh\necho '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"1.0.0\"]}'\n"), 0o755))
		}
	}
	for turn := range 16 {
		by := func(run int) string { return versions[turn>>run&1] } // by the turn's number, in binary
		other := func(run int) string { return versions[1-turn>>run&1] }
		t.Run(fmt.Sprintf("%04b", turn), func(t *testing.T) {
			n, before, after := bootstraptest.NewNode(t), snapshot.Snapshot{}, snapshot.Snapshot{}
			run := func(version string, args ...string) {
				t.Helper()
				out, err := n.Command(version, args...).CombinedOutput()
				require.NoError(t, err, "%s %s: %s", version, args, out)
			}
			does := func(version, command, agent, release string) {
				t.Helper()
				run(version, command, "--agent="+agent, "--owner="+agent+release, "--only=host-paths,cgroup,sysctl,bpffs,cni", "--cgroup-root=/run/its/cgroup",
					"--plugins="+filepath.Join(work, agent), "--cni-conf="+filepath.Join(work, agent+".conflist"), "--cni-conf-name="+release+agent+".conflist",
					"--sysctl-config-file=90-"+agent+".conf", "--sysctl=net.ipv4.ip_forward=1", "--sysctl=net.ipv4.conf.lo.log_martians=1")
			}
			bothFind := func(release string, agents ...string) {
				t.Helper()
				for _, agent := range agents {
					does(versions[0], "check", agent, release)
					does(versions[1], "check", agent, release)
				}
			}
			look := func(s snapshot.Snapshot) {
				require.NoError(t, n.Do(t.Context(), func(context.Context) error { return s.Node() }))
				delete(s, "file /run/slipway.lock")
			}
			require.NoError(t, n.Do(t.Context(), func(context.Context) error { return os.WriteFile("/run/xtables.lock", nil, 0o600) }))
			look(before)
			does(by(0), "apply", "first", "1")
			does(other(0), "apply", "second", "1")
			bothFind("1", "first", "second")
			does(by(1), "apply", "second", "2") // by another owner, with another name of its configuration
			does(other(1), "apply", "first", "2")
			bothFind("2", "first", "second")
			run(by(2), "uninstall", "--agent=first", "--any-owner")
			bothFind("2", "second")
			run(by(3), "uninstall", "--agent=second", "--any-owner")
			look(after)
			require.Empty(t, before.Diff(after))
		})
	}
}
