// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// olderEnv names a checkout of an older version, of which this one can read the journal.
const olderEnv = "SLIPWAY_E2E_OLDER"

// olderNodeinit builds the command of an older version: of the checkout that is given or,
// without, of the newest commit whose journal has this version's schema and other fields.
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

// olderCommit looks for the commit. The history of a shallow clone has none.
func olderCommit(t *testing.T) string {
	t.Helper()
	const journal = "bootstrap/journal"
	ours, schema := journalFields(t, journal)
	log, err := git(t.Context(), "log", "--first-parent", "--format=%H", "--", journal)
	if err != nil {
		testns.Skip(t, fmt.Sprintf("there is no history to take an older version of, and %s gives none: %v", olderEnv, err))
	}
	for _, commit := range strings.Fields(log) {
		fields, olderSchema := journalFields(t, journal, commit)
		if olderSchema != schema {
			break
		}
		if !slices.Equal(fields, ours) {
			return commit
		}
	}
	testns.Skip(t, fmt.Sprintf("the history has no older version whose journal is of %s, and %s gives none", schema, olderEnv))
	return ""
}

var isSchema = regexp.MustCompile(`schema += `)

// journalFields are the fields of a journal's records, and its schema: as they are, or as
// they were at a commit.
func journalFields(t *testing.T, dir string, at ...string) (fields []string, schema string) {
	t.Helper()
	grep := append([]string{"grep", "-hoE", `json:"[a-z_,]+"|^(const )?\s*schema += [0-9]+`}, at...)
	out, err := git(t.Context(), append(grep, "--", dir+"/*.go", ":!"+dir+"/*_test.go")...)
	if err != nil {
		return nil, "" // there was none
	}
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); isSchema.MatchString(line) {
			schema = strings.TrimPrefix(line, "const ")
		} else {
			fields = append(fields, line)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields), schema
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
